<?php
// issue_token.php

/** Returns a token that lets a client connect as the user within an hour. */
function issueToken(string $user, array $claims = []): string
{
    $claims = ['sub' => $user, 'exp' => time() + 3600] + $claims;
    $signed = encode(['alg' => 'HS256', 'typ' => 'JWT']) . '.' . encode($claims);
    return $signed . '.' . base64url(hash_hmac('sha256', $signed, getenv('SWITCHBOARD_AUTH_HS256_SECRET'), true));
}

function encode(array $value): string
{
    return base64url(json_encode($value, JSON_THROW_ON_ERROR));
}

function base64url(string $data): string
{
    return rtrim(strtr(base64_encode($data), '+/', '-_'), '=');
}

if (realpath($argv[0] ?? '') === __FILE__) {
    echo issueToken($argv[1], ['channels' => ['chat:42' => 'sub pub']]), "\n";
}
