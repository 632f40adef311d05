declare module 'brittle' {
  type Body = (t: Assert) => void | Promise<void>
  interface TestOptions {
    timeout?: number
    skip?: boolean
    todo?: boolean
    solo?: boolean
  }
  interface AssertFn<A extends unknown[]> {
    (...args: A): void
    coercively(...args: A): void
  }
  export interface Assert {
    is: AssertFn<[actual: unknown, expected: unknown, message?: string]>
    not: AssertFn<[actual: unknown, expected: unknown, message?: string]>
    alike: AssertFn<[actual: unknown, expected: unknown, message?: string]>
    unlike: AssertFn<[actual: unknown, expected: unknown, message?: string]>
    ok(value: unknown, message?: string): void
    absent(value: unknown, message?: string): void
    pass(message?: string): void
    fail(message?: string): void
    exception: {
      (fn: Promise<unknown> | (() => unknown), expected?: unknown, message?: string): Promise<void>
      all(fn: Promise<unknown> | (() => unknown), expected?: unknown, message?: string): Promise<void>
    }
    execution(fn: Promise<unknown> | (() => unknown), message?: string): Promise<number>
    plan(count: number): void
    end(): void
    timeout(ms: number): void
    comment(...message: unknown[]): void
    teardown(fn: () => unknown, options?: { order?: number; force?: boolean }): void
    test(name: string, body: Body): Promise<boolean>
  }
  /** Called at the top of a file; tests run one after the other, and nobody waits for one. */
  interface Test {
    (name: string, body: Body): void
    (name: string, options: TestOptions, body: Body): void
    skip: Test
    solo: Test
  }
  const test: Test
  export default test
  export { test }
  export const hook: Test
  export function configure(options: { timeout?: number; bail?: boolean }): void
}
