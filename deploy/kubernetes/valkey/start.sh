#!/bin/sh
# Starts Valkey for the gateway's replicas: one user, who may touch the gateway's keys and nothing else; nothing on disk.
# The password is the part between `gateway:` and `@` in ERA_GATEWAY_STORE, or PASSWORD.
#
# noeviction: a claim that was evicted could be made a second time, and then the call would be gone on with twice.
set -eu
if [ -z "${PASSWORD:-}" ]; then
    PASSWORD=${ERA_GATEWAY_STORE#*://gateway:}
    PASSWORD=${PASSWORD%%@*}
fi
umask 077
cat >"${FOLDER:-/tmp}/users.acl" <<USERS
user default off
user gateway on >$PASSWORD ~era-gateway:* resetchannels -@all +@connection +@string +@hash +@stream +@keyspace +eval -@dangerous
USERS
unset PASSWORD ERA_GATEWAY_STORE
exec "${SERVER:-valkey-server}" --aclfile "${FOLDER:-/tmp}/users.acl" --port "${PORT:-6379}" --save "" --appendonly no \
    --maxmemory "${MAXMEMORY:-256mb}" --maxmemory-policy noeviction --maxclients "${MAXCLIENTS:-10000}"
