<?php
// push.php

/** Pushes to a channel, a user or a client, and returns the results. */
function push(string $target, string $name, mixed $data): array
{
    $url = (getenv('SWITCHBOARD_URL') ?: 'http://127.0.0.1:8080') . '/v1/push';
    // With a key, a repeated push is stored once.
    $body = json_encode(['key' => bin2hex(random_bytes(16)), $target => $name, 'data' => $data], JSON_THROW_ON_ERROR);
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ['Content-Type: application/json', 'Authorization: Bearer ' . getenv('SWITCHBOARD_KEY')],
        'content' => $body,
        'timeout' => 10,
        'ignore_errors' => true, // reads the bodies of errors
    ]]);
    for ($attempt = 0; $attempt < 5; $attempt++) {
        $http_response_header = [];
        $answer = @file_get_contents($url, false, $context);
        $status = (int) substr($http_response_header[0] ?? '', 9, 3); // 0 without an answer
        $results = json_decode((string) $answer, true)['results'] ?? null;
        if ($status === 200 && $results !== null) {
            return $results;
        }
        if ($status >= 400 && $status < 500 && $status !== 429) {
            throw new RuntimeException("refused: $answer"); // a repetition would be refused, too
        }
        $after = preg_match('/^Retry-After: (\d+)$/mi', implode("\n", $http_response_header), $m) ? (int) $m[1] : 1;
        usleep($after * random_int(1_000_000, 2_000_000));
    }
    throw new RuntimeException("not known whether it is stored: $status $answer");
}

if (realpath($argv[0] ?? '') === __FILE__) {
    echo json_encode(push($argv[1], $argv[2], json_decode($argv[3]))), "\n";
}
