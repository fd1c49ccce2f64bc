/**
 * The worker's image, as a part of `sls deploy`. Its tag is its content, so the template names it before it exists, and packaging
 * needs neither network nor credentials. A deployment looks whether the stage's repository has that tag; only if it hasn't, it
 * builds and pushes. `--param image=<uri>` leaves all that out.
 */
import { ECRClient, type ECRClientConfig } from '@aws-sdk/client-ecr';
import { BUILDERS, type Builder, type BuilderName, findBuilder } from './image/builder.ts';
import { contentTag, PLATFORM } from './image/content.ts';
import { ImageError } from './image/errors.ts';
import { hasImage, loginFor, repositoryUri } from './image/repository.ts';

type Resources = Record<string, { Properties: Record<string, unknown> } | undefined>;

/** What this uses of osls. */
type Serverless = {
  serviceDir: string;
  classes: { Error: new (message: string, code: string) => Error };
  getProvider(name: 'aws'): { getAwsSdkV3Config(): Promise<ECRClientConfig> };
  service: {
    custom: { imageBuilders?: string };
    resources: { Resources: Resources };
    provider: {
      compiledCloudFormationTemplate: { Resources: Resources };
      /** The stack as a first deployment makes it, to have a bucket to upload to. */
      coreCloudFormationTemplate?: { Resources: Resources };
    };
  };
};

type Progress = { update(message: string): void; remove(): void };

type Utils = {
  log: { notice(text: string): void; info(text: string): void };
  progress: { create(options: { name: string; message: string }): Progress };
};

const REPOSITORY = 'WorkerRepository';
const ownImage = new RegExp(`^\\$\\{${REPOSITORY}\\.RepositoryUri\\}:(?<tag>[0-9a-f]+)$`);

// osls takes a plugin by its default export.
export default class ImagePlugin {
  /** `${image:tag}` */
  readonly configurationVariablesSources;
  readonly hooks: Record<string, () => Promise<void>>;
  readonly #serverless: Serverless;
  readonly #utils: Utils;
  #built: { builder: Builder; image: string; tag: string } | undefined;

  constructor(serverless: Serverless, _options: unknown, utils: Utils) {
    this.#serverless = serverless;
    this.#utils = utils;
    this.configurationVariablesSources = {
      image: { resolve: async () => ({ value: await contentTag(serverless.serviceDir) }) },
    };
    this.hooks = {
      'after:package:initialize': async () => this.#beginWithRepository(),
      // What can fail on this machine fails before anything is made on AWS.
      'before:aws:deploy:deploy:createStack': () => this.#step('build', (progress) => this.#build(progress)),
      'after:aws:deploy:deploy:createStack': () => this.#step('push', (progress) => this.#push(progress)),
    };
  }

  /** The service wants its image when it is made. So the repository comes with the bucket, in the step before. */
  #beginWithRepository(): void {
    const { provider, resources } = this.#serverless.service;
    if (provider.coreCloudFormationTemplate === undefined) return;
    provider.coreCloudFormationTemplate.Resources[REPOSITORY] = structuredClone(resources.Resources[REPOSITORY]);
  }

  async #build(progress: Progress): Promise<void> {
    const tag = this.#wantedTag();
    if (tag === undefined) return;
    progress.update("Looking for the worker's image");
    if (await hasImage(await this.#ecr(), this.#repositoryName(), tag)) {
      this.#utils.log.info(`The worker's image is there: ${tag}`);
      return;
    }
    const here = await contentTag(this.#serverless.serviceDir);
    if (here !== tag) {
      throw new ImageError(
        `What was packaged wants the worker's image ${tag}, but this folder would make ${here}. Package again.`,
      );
    }
    const builder = await findBuilder(builderNames(this.#serverless.service.custom.imageBuilders), (line) => {
      this.#utils.log.info(line);
      progress.update(`Worker's image: ${line.trim().slice(0, 80)}`);
    });
    this.#utils.log.notice(`Building the worker's image with ${builder.name}, for ${PLATFORM}: ${tag}`);
    progress.update("Building the worker's image");
    const image = `${this.#repositoryName()}:${tag}`;
    await builder.build(this.#serverless.serviceDir, image);
    this.#built = { builder, image, tag };
  }

  async #push(progress: Progress): Promise<void> {
    if (this.#built === undefined) return;
    const { builder, image, tag } = this.#built;
    progress.update("Pushing the worker's image");
    const ecr = await this.#ecr();
    const repository = await repositoryUri(ecr, this.#repositoryName());
    const uri = `${repository}:${tag}`;
    await builder.push(image, uri, await loginFor(ecr, repository));
    if (!(await hasImage(ecr, this.#repositoryName(), tag))) {
      throw new ImageError(`${builder.name} says that it pushed ${uri}, but ECR doesn't have it.`);
    }
    this.#utils.log.notice(`Pushed ${uri}`);
  }

  /** undefined when the task runs an image from somewhere else */
  #wantedTag(): string | undefined {
    const task = this.#serverless.service.provider.compiledCloudFormationTemplate.Resources['WorkerTask'];
    const [container] = (task?.Properties['ContainerDefinitions'] ?? []) as { Image?: { 'Fn::Sub'?: string } }[];
    return ownImage.exec(container?.Image?.['Fn::Sub'] ?? '')?.groups?.['tag'];
  }

  #repositoryName(): string {
    const { Resources } = this.#serverless.service.provider.compiledCloudFormationTemplate;
    return String(Resources[REPOSITORY]?.Properties['RepositoryName']);
  }

  async #ecr(): Promise<ECRClient> {
    return new ECRClient(await this.#serverless.getProvider('aws').getAwsSdkV3Config());
  }

  async #step(name: string, work: (progress: Progress) => Promise<void>): Promise<void> {
    const progress = this.#utils.progress.create({ name, message: "The worker's image" });
    try {
      await work(progress);
    } catch (fault) {
      throw fault instanceof ImageError ? new this.#serverless.classes.Error(fault.message, 'WORKER_IMAGE') : fault;
    } finally {
      progress.remove();
    }
  }
}

function builderNames(given: string | undefined): BuilderName[] {
  const names = (given ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length === 0) return [...BUILDERS];
  return names.map((name) => {
    const known = BUILDERS.find((builder) => builder === name);
    if (known !== undefined) return known;
    throw new ImageError(`imageBuilders: ${name} is not known here; ${BUILDERS.join(', ')} are.`);
  });
}
