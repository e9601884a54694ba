# webhook.rb
require "json"
require "openssl"
require "socket"
require "stringio"

SECRETS = ENV.fetch("SWITCHBOARD_WEBHOOKS_SECRETS").split(",")
SEEN = {} # in production a table of your database, written together with the work

# Reports whether the body was signed with one of the secrets in the last five minutes.
def verify(secrets, timestamp, signatures, body)
  return false unless timestamp.b.match?(/\A[0-9]{1,12}\z/n) && (Time.now.to_i - timestamp.to_i).abs <= 300

  given = signatures.b.split(",").map(&:strip)
  secrets.product(given).map do |secret, signature|
    OpenSSL.secure_compare("v1=#{OpenSSL::HMAC.hexdigest("SHA256", secret, "#{timestamp}.".b + body.b)}", signature)
  end.any?
end

def handle(event)
  puts "#{event["type"]} #{event["user"] || event["channel"]}"
end

# A Rack application: mount it in Rails or Sinatra, or write "run WEBHOOK" into config.ru.
WEBHOOK = lambda do |env|
  body = env["rack.input"].read
  next [401, {}, []] unless verify(SECRETS, env["HTTP_SWITCHBOARD_TIMESTAMP"].to_s, env["HTTP_SWITCHBOARD_SIGNATURE"].to_s, body)

  JSON.parse(body)["events"].each do |event|
    next if SEEN[event["id"]] # events may arrive again

    handle(event)
    SEEN[event["id"]] = true
  end
  [204, {}, []]
end

# Ruby comes without a web server. This one is for a trial.
if $PROGRAM_NAME == __FILE__
  $stdout.sync = true
  server = TCPServer.new("127.0.0.1", ENV.fetch("PORT", 9000).to_i)
  loop do
    client = server.accept
    lines = client.gets("\r\n\r\n").to_s.split("\r\n").drop(1).map { |line| line.split(": ", 2) }
    env = lines.to_h { |name, value| ["HTTP_#{name.upcase.tr("-", "_")}", value] }
    body = client.read([env["HTTP_CONTENT_LENGTH"].to_i, 2 << 20].min)
    status, = WEBHOOK.call(env.merge("rack.input" => StringIO.new(body)))
    client.write("HTTP/1.1 #{status} OK\r\nConnection: close\r\n\r\n")
    client.close
  end
end
