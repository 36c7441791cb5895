# The service alone: PostgreSQL, Redis or Valkey, and the proxy are other containers.
#   docker run --read-only --tmpfs /tmp -v gatehouse:/srv/instance -p 8000:8000 \
#     -e GATEHOUSE_DATABASE_URL=... -e GATEHOUSE_REDIS_URL=... gatehouse
# Migrate first, once per release: docker run ... gatehouse flask --app wsgi prepare
# deploy/compose.yaml does all of it.
FROM python:3.13-slim AS packages
COPY requirements.txt /
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --disable-pip-version-check \
        --no-deps --require-hashes -r /requirements.txt \
    && /venv/bin/pip check

FROM python:3.13-slim
ENV PATH=/srv/gatehouse/bin:/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    GATEHOUSE_INSTANCE=/srv/instance \
    GATEHOUSE_BIND=0.0.0.0:8000 \
    GATEHOUSE_LOG_FORMAT=json
# A fixed id, so that a mounted folder can be given to it. Its group reads avatars: nginx joins it.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin gatehouse \
    && install -d -o gatehouse -g gatehouse -m 0700 /srv/instance \
    && install -d -o gatehouse -g gatehouse -m 0750 /srv/avatars
COPY --from=packages /venv /venv
WORKDIR /srv/gatehouse
COPY wsgi.py gunicorn.conf.py ./
COPY migrations migrations
COPY app app
COPY bin/gatehouse bin/lib.sh bin/
# Compiled now: the file system is read-only later.
RUN python -m compileall -q -j 0 app wsgi.py
# By its number: a name does not tell Kubernetes that this is not root (runAsNonRoot). Any other user
# will do, if the folders below and /tmp are mounted so that it may write them.
USER 10001
VOLUME ["/srv/instance", "/srv/avatars"]
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=8s --start-period=20s --start-interval=1s \
    CMD ["python", "-m", "app.serving.health"]
CMD ["gunicorn", "wsgi:app"]
