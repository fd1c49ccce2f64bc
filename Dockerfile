# The worker. Node runs TypeScript as it is, so nothing is built: one stage installs, the other takes what was installed.
ARG NODE=24.21-bookworm-slim

# On whatever machine builds, without emulation: the packages are the same for each (a test keeps it so), and nothing runs below.
FROM --platform=$BUILDPLATFORM node:${NODE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# No package of the worker's has to run anything to be installed, so none may.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:${NODE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY shared shared
COPY sources sources
COPY worker worker
# All that a worker writes to, under a read-only root. Fargate gives a volume that the image doesn't declare to root alone;
# one that it does keeps the folder's own permissions, which here let everyone write.
VOLUME ["/tmp"]
USER node
# No shell and no npm in between: SIGTERM must reach Node, which hands its connections over.
# Small young generation: with much memory Node lets garbage pile up before it looks, four times what idle sockets need.
CMD ["node", "--max-semi-space-size=8", "worker/main.ts"]
