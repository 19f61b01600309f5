# Redrive in a container: docs/recipes.md says how to run it.
#   docker build --tag redrive .
FROM rust:1-slim-bookworm AS build
ARG PROFILE=release
WORKDIR /src
COPY . .
RUN scripts/build /out "$PROFILE"

FROM debian:bookworm-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/redrive /usr/local/bin/redrive
COPY --from=build --chown=10001:10001 /out/data /data
# Not root. Commands that were run are remembered below HOME.
USER 10001:10001
ENV HOME=/data
WORKDIR /data
VOLUME /data
ENTRYPOINT ["redrive"]
CMD ["work"]
