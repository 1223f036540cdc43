# The images: `broker` (the server and its command line), `operator` (also the operator and kubectl-disque), `spark`
# (PySpark with the connector and the pipelines) and `example` (workers of examples/photos). `make image` builds the first
# three. docs/operations/image.md describes their contents and size, and why they have no shell.
#
#   tools ── compiled or given ── wheel ──┬── broker-files ───┐
#     │                                   ├── operator-files ─┤
#     │                                   ├── spark-files ────┤
#     │                                   └── example-files ──┤
#     ├── java ───────────────────────────────────────────────┤
#     └── python ── runtime ──────────────────────────────────┴── spark, example, operator, broker
#
# Any image based on Debian with Python 3.11 or newer and pip. Only its Python is copied to the images.
ARG BASE_IMAGE=docker.io/library/python:3.13-slim

# `given` takes the wheel of `make build` instead of compiling it again: for a base image with the Python and the system
# libraries of this machine.
ARG WHEEL=compiled

FROM ${BASE_IMAGE} AS tools
# Mirrors and proxies for pip and apt: set these arguments, HTTP_PROXY etc., or the secret `pip` (a pip.conf). The images
# do not contain them.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_TRUSTED_HOST
ENV PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
USER root
# Debian's Python comes without headers; other builds of Python include them.
RUN headers="$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" \
 && if [ ! -e "$headers" ]; then more=python3-dev; fi \
 && apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends binutils gcc libc6-dev $more >/dev/null
WORKDIR /build
COPY image/locked.py requirements.lock ./

FROM tools AS compiled
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv --without-pip /opt/build \
 && python3 locked.py /opt/build/bin/python requirements.lock hatchling hatch-mypyc 'mypy[mypyc]' setuptools
COPY pyproject.toml README.md LICENSE ./
COPY broker broker
COPY operator operator
# Build hooks are disabled by default; this one compiles the hot path with mypyc. The flags let the compiler inline the
# functions of the module into each other.
RUN CFLAGS="-fno-semantic-interposition -fvisibility=hidden" HATCH_BUILD_HOOKS_ENABLE=1 PATH="/opt/build/bin:$PATH" python -m hatchling build --target wheel --directory /wheel

FROM scratch AS given
COPY build/wheel /wheel

FROM ${WHEEL} AS wheel

FROM tools AS python
COPY image/rootfs.py ./
RUN python3 rootfs.py /rootfs && mkdir /empty

# Environments are built at their final path, because their programs contain it.
FROM tools AS environment
COPY --from=wheel /wheel /wheel
# The adapters, whose frameworks only the image of their workers has.
ENV WITHOUT="-disqued.celery -disqued.dramatiq -disqued.kombu"

FROM environment AS broker-files
COPY image/trim.py image/imports.py ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv --without-pip /opt/disque \
 && python3 locked.py /opt/disque/bin/python requirements.lock "$(echo /wheel/*.whl)[backup,cli]" \
 && python3 trim.py /opt/disque \
 && /opt/disque/bin/python imports.py disqued $WITHOUT

FROM environment AS operator-files
COPY image/trim.py image/imports.py ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv --without-pip /opt/disque \
 && python3 locked.py /opt/disque/bin/python requirements.lock "$(echo /wheel/*.whl)[backup,cli,operator]" \
 && python3 trim.py /opt/disque \
 && /opt/disque/bin/python imports.py disqued disque_operator $WITHOUT

# PySpark, other dependencies and the compiled wheel: a large layer that seldom changes.
FROM environment AS spark-packages
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv --without-pip /opt/disque \
 && python3 locked.py /opt/disque/bin/python requirements.lock "$(echo /wheel/*.whl)[backup,cli,report]"
COPY image/trimspark.py image/trim.py image/imports.py ./
RUN python3 trimspark.py /opt/disque \
 && python3 trim.py /opt/disque

# The connector and its jobs are plain Python and not part of the wheel here, so that changing them compiles nothing.
FROM spark-packages AS spark-files
COPY spark spark
COPY image/sparkentry.py ./
RUN ours="/ours$(echo /opt/disque/lib/python3*/site-packages)" \
 && mkdir -p "$ours" /ours/opt/disque/bin \
 && cp -r spark/. "$ours" \
 && python3 -m compileall -q --invalidation-mode unchecked-hash -s /ours "$ours" \
 && install sparkentry.py /ours/opt/disque/bin/sparkentry \
 && ln -s sparkentry /ours/opt/disque/bin/spark-submit \
 && ln -s "${ours#/ours}/pipelines" /ours/opt/disque/pipelines \
 && cp -r /ours/. / \
 && /opt/disque/bin/python imports.py disqued pyspark_disque pyspark_disque_aof pipelines $WITHOUT

# Workers of the example application: Celery with this broker. A model for the image of your own workers.
FROM environment AS example-files
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv --without-pip /opt/disque \
 && python3 locked.py /opt/disque/bin/python requirements.lock "$(echo /wheel/*.whl)[celery]" pillow
COPY image/trim.py ./
RUN python3 trim.py /opt/disque

FROM tools AS java
RUN mkdir -p /usr/share/man/man1 \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null
COPY image/rootfs.py ./
# Hadoop's local file system runs these programs for what Java cannot do, and Spark runs a shell to find Python.
RUN python3 rootfs.py /rootfs /usr/lib/jvm/default-java /bin/sh /bin/chmod /bin/ln /bin/ls /bin/readlink /bin/rm /usr/bin/stat

FROM scratch AS runtime
ENV PATH=/opt/disque/bin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=python /rootfs /
COPY --from=python --chown=10001:10001 /empty /data
# A number, so that Kubernetes can check that it is not root.
USER 10001:10001
WORKDIR /data

FROM runtime AS spark
COPY --from=java /rootfs /
COPY --from=spark-packages /opt/disque /opt/disque
COPY --from=spark-files /ours /
ENV PATH=/opt/disque/bin:/usr/bin:/bin JAVA_HOME=/usr/lib/jvm/default-java
RUN ["python3", "-c", "import pyspark_disque, disqued.client, pyarrow.parquet"]
RUN ["/usr/lib/jvm/default-java/bin/java", "-version"]
# Spark starts its pods with the argument `driver` or `executor`; the entry point of the image handles them.
ENTRYPOINT ["sparkentry"]
CMD ["spark-submit", "--version"]
ARG BASE_IMAGE
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="disqued-spark" \
      org.opencontainers.image.description="Spark with Disque queues as source and sink, for drivers and executors" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"

FROM runtime AS example
COPY --from=example-files /opt/disque /opt/disque
COPY examples /opt/examples
ENV PYTHONPATH=/opt/examples
RUN ["python3", "-c", "import celery.bin.celery, photos.tasks, photos.web, disqued.kombu, disqued.celery"]
CMD ["celery", "-A", "photos.app", "worker"]

FROM runtime AS operator
COPY --from=operator-files /opt/disque /opt/disque
# Fails the build if a shared library is missing.
RUN ["python3", "-c", "import disque_operator.main, disque_operator.kubectl.main, disqued.client"]
CMD ["disque-operator"]
ARG BASE_IMAGE
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="disqued-operator" \
      org.opencontainers.image.description="Operator for DisqueClusters (clusters of job brokers), with kubectl-disque" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"

FROM runtime AS broker
COPY --from=broker-files /opt/disque /opt/disque
RUN ["python3", "-c", "import disqued.cli.main, disqued.client, disqued.server.main"]
# Ports for clients; for HTTP (probes, metrics, console); and for other nodes.
EXPOSE 7711 9711 17711
# Jobs and the node's ID. Declared as a volume, so that `docker run --read-only` works without options.
VOLUME ["/data"]
# Healthy if the server replies at all: a restart would not help if it requires a password or is loading its AOF. Uses
# no shell, and no server option that a custom command could omit.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["python3", "-ISc", "import socket; s = socket.create_connection(('127.0.0.1', 7711), 4); s.sendall(b'PING\\r\\n'); s.recv(1) or exit(1)"]
# Clients of a container are on other machines; whoever publishes a port decides who reaches it.
CMD ["disque-server", "--protected-mode", "no"]
ARG BASE_IMAGE
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="disqued" \
      org.opencontainers.image.description="Disque, complete, in Python: an in-memory, replicated job broker" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
