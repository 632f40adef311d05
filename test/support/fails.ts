import type { Assert } from 'brittle'
import { NodeError } from '../../src/kit/errors.js'
import type { ErrorCode } from '../../src/kit/errors.js'

/** Asserts that the call fails with a NodeError of this code, and gives the error back. */
export async function failsWith(t: Assert, code: ErrorCode, call: () => unknown): Promise<NodeError> {
  try {
    await call()
  } catch (error) {
    if (!(error instanceof NodeError)) throw error
    t.is(error.code, code, `fails with ${code}: ${error.message}`)
    return error
  }
  throw new Error(`did not fail with ${code}`)
}
