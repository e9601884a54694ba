# issue_token.rb
require "json"
require "openssl"

SECRET = ENV.fetch("SWITCHBOARD_AUTH_HS256_SECRET")

# Returns a token that lets a client connect as the user within an hour.
def issue_token(user, claims = {})
  claims = { "sub" => user, "exp" => Time.now.to_i + 3600 }.merge(claims)
  signed = [{ "alg" => "HS256", "typ" => "JWT" }, claims].map { |part| base64url(JSON.generate(part)) }.join(".")
  "#{signed}.#{base64url(OpenSSL::HMAC.digest("SHA256", SECRET, signed))}"
end

def base64url(data)
  [data].pack("m0").tr("+/", "-_").delete("=")
end

puts issue_token(ARGV[0], "channels" => { "chat:42" => "sub pub" }) if $PROGRAM_NAME == __FILE__
