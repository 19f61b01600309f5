#!/bin/sh
# postgres.sh FOLDER BIN LOCK [ADDRESSES [PRIMARY]]: runs a PostgreSQL server in a folder of its own, reached by a socket there, and by the network at
# ADDRESSES if there are any, as a standby of the server whose folder is PRIMARY if there is one, for as long as anybody holds a lock on the file LOCK. Then the server is ended and the folder removed. If
# this process is killed, the server ends by itself; if the server is killed, it comes back, unless there is a file `held` in FOLDER.
set -u
folder=$1 bin=$2 lock=$3 addresses=${4:-} primary=${5:-}
exec 9>>"$lock"
cd "$folder" || exit 1
as="setpriv --pdeathsig QUIT"
if [ "$(id -u)" = 0 ]; then
  # A server does not run as root: as the user that its package made, or in a namespace with another number.
  if chown postgres: . 2>/dev/null && setpriv --reuid=postgres --regid=postgres --clear-groups true 2>/dev/null; then
    as="$as --reuid=postgres --regid=postgres --clear-groups"
  else
    as="$as unshare --user --map-user=1000 --map-group=1000"
  fi
fi
# The lock is not for the server: it would keep itself.
if [ -n "$primary" ]; then
  # Where the server's programs really are: some are known by links elsewhere.
  $as "$(dirname "$(readlink -f "$bin/postgres")")/pg_basebackup" -D data -h "$primary" -U redrive -R -c fast 9>&- || exit 1
else
  $as "$bin/initdb" -D data -U redrive -A trust -E UTF8 --locale=C 9>&- || exit 1
fi
[ -z "$addresses" ] || echo 'host all all 0.0.0.0/0 trust' >>data/pg_hba.conf
# Not on the command line: a test may have its own server reached otherwise.
printf "listen_addresses = '%s'\nfsync = on\n" "$addresses" >>data/postgresql.conf
setpriv --pdeathsig KILL sh -c 'while :; do [ -e held ] || "$@"; sleep 0.1; done' again \
  $as "$bin/postgres" -D data -k "$folder" -c max_connections=200 -c shared_buffers=64MB 9>&- &
server=$!
idle=0
while [ $idle -lt 10 ]; do
  sleep 1
  if flock -x -n 9; then
    idle=$((idle + 1))
    [ $idle -lt 10 ] && flock -u 9
  else
    idle=0
  fi
done
# At once: nothing of it is needed any more.
kill -KILL $server
while kill -0 "$(head -n 1 data/postmaster.pid 2>/dev/null)" 2>/dev/null; do sleep 0.1; done
cd / && rm -rf "$folder"
