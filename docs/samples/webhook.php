<?php
// webhook.php

/** Reports whether the body was signed with one of the secrets in the last five minutes. */
function verify(array $secrets, string $timestamp, string $signatures, string $body): bool
{
    if (!preg_match('/^[0-9]{1,12}$/D', $timestamp) || abs(time() - (int) $timestamp) > 300) {
        return false;
    }
    $valid = false;
    foreach ($secrets as $secret) {
        $want = 'v1=' . hash_hmac('sha256', "$timestamp.$body", $secret);
        foreach (explode(',', $signatures) as $given) {
            $valid = hash_equals($want, trim($given)) || $valid;
        }
    }
    return $valid;
}

function handle(array $event): void
{
    error_log($event['type'] . ' ' . ($event['user'] ?? $event['channel'] ?? ''));
}

/** Handles the events of a POST, and returns the status of the answer. */
function receive(string $timestamp, string $signatures, string $body): int
{
    if (!verify(explode(',', getenv('SWITCHBOARD_WEBHOOKS_SECRETS')), $timestamp, $signatures, $body)) {
        return 401;
    }
    foreach (json_decode($body, true, flags: JSON_THROW_ON_ERROR)['events'] as $event) {
        // In production a table of your database has the ids, written together with the work.
        $seen = sys_get_temp_dir() . '/event-' . hash('sha256', $event['id']);
        if (!file_exists($seen)) { // events may arrive again
            handle($event);
            touch($seen);
        }
    }
    return 204;
}

http_response_code(receive(
    $_SERVER['HTTP_SWITCHBOARD_TIMESTAMP'] ?? '',
    $_SERVER['HTTP_SWITCHBOARD_SIGNATURE'] ?? '',
    file_get_contents('php://input'),
));
