# Redrive in a container: docs/recipes.md says how to run it.
#   docker build --tag redrive .
FROM rust:1-slim-bookworm AS build
ARG PROFILE=dist
WORKDIR /src
COPY . .
RUN scripts/build /out "$PROFILE"

FROM debian:bookworm-slim AS base
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/redrive /usr/local/bin/redrive
COPY --from=build --chown=10001:10001 /out/data /data
# Not root. Commands that were run are remembered below HOME.
USER 10001:10001
ENV HOME=/data
WORKDIR /data
VOLUME /data
ENTRYPOINT ["redrive"]

# A server: docker build --target serve --tag redrive-serve .
FROM base AS serve
EXPOSE 7171
HEALTHCHECK --interval=30s --timeout=6s --start-period=30s CMD ["redrive", "serve", "--check"]
CMD ["serve", "--work"]

FROM base
CMD ["work"]
