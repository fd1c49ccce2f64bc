/** @type {import('jest').Config} */
export default {
  rootDir: import.meta.dirname,
  testMatch: ['<rootDir>/tests/**/*.test.ts'],
  testEnvironment: 'node',
  injectGlobals: false, // tests import what they use from @jest/globals, so no global types are needed
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '\\.ts$': ['@swc/jest', { jsc: { parser: { syntax: 'typescript' }, target: 'esnext' }, module: { type: 'es6' } }],
  },
  modulePathIgnorePatterns: ['<rootDir>/\\.(serverless|esbuild|local)/'],
  watchman: false,
  maxWorkers: '100%', // the default leaves one core idle, which is half of a small machine
  restoreMocks: true,
};
