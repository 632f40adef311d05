import type { CallToolResult } from '@modelcontextprotocol/server'
import type { NodeError } from '../../../kit/errors.js'

/** A result of a tool that is content of the protocol already. Made by {@link mcpContent}. */
export class McpContent {
  readonly result: CallToolResult
  /** Of a result with `isError`; null: unknown, or none. */
  readonly failure: NodeError | null

  constructor(result: CallToolResult, failure: NodeError | null) {
    this.result = result
    this.failure = failure
  }
}

/**
 * Marks a handler's result as content of the protocol (an imported tool's, an image): it goes to the caller as it is.
 * `failure`: the error behind a result with `isError`, for the record of the call.
 */
export function mcpContent(result: CallToolResult, failure: NodeError | null = null): McpContent {
  return new McpContent(result, failure)
}
