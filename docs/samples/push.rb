# push.rb
require "json"
require "net/http"
require "securerandom"

URL = URI(ENV.fetch("SWITCHBOARD_URL", "http://127.0.0.1:8080") + "/v1/push")
KEY = ENV.fetch("SWITCHBOARD_KEY", "")

# Pushes to a channel, a user or a client, and returns the results.
def push(target, name, data)
  # With a key, a repeated push is stored once.
  body = JSON.generate("key" => SecureRandom.uuid, target => name, "data" => data)
  headers = { "Content-Type" => "application/json", "Authorization" => "Bearer #{KEY}" }
  problem = nil
  5.times do
    after = "1"
    begin
      answer = Net::HTTP.start(URL.host, URL.port, use_ssl: URL.scheme == "https", open_timeout: 10, read_timeout: 10) do |http|
        http.post(URL.path, body, headers)
      end
      return JSON.parse(answer.body).fetch("results") if answer.code == "200"
      problem, after = answer.body, answer["Retry-After"] || "1"
      # A repetition would be refused, too.
      raise ArgumentError, "refused: #{problem}" if answer.code.to_i.between?(400, 499) && answer.code != "429"
    rescue SystemCallError, IOError, Timeout::Error, Net::ProtocolError, OpenSSL::SSL::SSLError, JSON::ParserError => e
      problem = e # no answer, or a part of one
    end
    sleep(after.to_f * (1 + rand))
  end
  raise "not known whether it is stored: #{problem}"
end

puts JSON.generate(push(ARGV[0], ARGV[1], JSON.parse(ARGV[2]))) if $PROGRAM_NAME == __FILE__
