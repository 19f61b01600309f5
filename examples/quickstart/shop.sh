#!/bin/sh
# A stand-in for a scraper: reads a job, "fetches" a product and prints its record. Three of the products misbehave.
read -r job
n=$(printf %s "$job" | sed 's/.*"product":\([0-9]*\).*/\1/')
case "$n" in
  4) echo '{"failure":{"reason":"schema_validation","code":"SelectorNotFound","message":".price-tag-main","http_status":200}}'; exit 1 ;;
  7) echo "connection reset by peer" >&2; exit 75 ;;     # transient: tried again, in vain
  9) kill -SEGV $$ ;;                                    # takes its process down: a poison pill
esac
echo "{\"product\":$n,\"price\":\"$((n * 3)).99\"}"
