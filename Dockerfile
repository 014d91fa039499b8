# The tag names a patch release of Python and a Debian; for a build that can be repeated to the byte, pin the digest of
# the day as well: python:3.13.16-slim-trixie@sha256:...
ARG BASE=docker.io/library/python:3.13.16-slim-trixie

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python3 -m venv --without-pip /opt/era-gateway
WORKDIR /src
# The dependencies first: a change of the code alone leaves this layer as it was.
COPY pyproject.toml ./
# With the extra for several replicas.
RUN python3 -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
print(*project["dependencies"], *project["optional-dependencies"]["redis"], sep="\n")' \
      > requirements.txt \
 && python3 -m pip --python /opt/era-gateway/bin/python install --only-binary :all: -r requirements.txt
COPY README.md LICENSE ./
COPY gateway gateway
RUN python3 -m pip --python /opt/era-gateway/bin/python install --no-deps . \
 && /opt/era-gateway/bin/python -m compileall -q /opt/era-gateway/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="era-gateway" \
      org.opencontainers.image.description="A stateless front door for the Model Context Protocol: modern clients, legacy servers." \
      org.opencontainers.image.licenses="MIT"
ENV PATH=/opt/era-gateway/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ERA_GATEWAY_HOST=0.0.0.0 \
    ERA_GATEWAY_PORT=8080
COPY --from=build /opt/era-gateway /opt/era-gateway
# By number, so that an orchestrator can see that it is not root.
USER 65532:65532
WORKDIR /etc/era-gateway
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["python3", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['ERA_GATEWAY_PORT'] + '/healthz', timeout=2)"]
ENTRYPOINT ["era-gateway"]
CMD ["serve"]
