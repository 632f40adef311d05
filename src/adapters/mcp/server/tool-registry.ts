import { Emitter } from '../../../kit/events.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import type { Check, CompileSchema, SchemaFault } from '../../../kit/sign.js'
import { PublishedNames } from '../tools/published-names.js'
import type { ToolSchema, RegisteredTool, ToolDefinition, ToolHandler, ToolSource } from './tool.js'

/** Tools of one registry. */
export const MAX_TOOLS = 20_000
/** Longest canonical name, in characters. */
const MAX_NAME = 256
/** Longest description, in characters. */
const MAX_DESCRIPTION = 16_384
/** Compiled schemas that are remembered by their text. */
const MAX_REMEMBERED = 512

/** A private copy of a schema, with its validator. */
interface CompiledTool {
  readonly schema: ToolSchema
  readonly check: Check
}

/** Whether a definition can be registered (spec mcp-runtime, ValidationResult). */
export interface ValidationResult {
  readonly valid: boolean
  readonly errors: readonly SchemaFault[]
}

/**
 * The tools that this process offers itself (spec mcp-runtime, ToolRegistry). Schemas are compiled when a tool is
 * registered and never at a call; equal schemas share a validator as far as the given compiler shares them.
 */
export class ToolRegistry implements ToolSource {
  readonly #compile: CompileSchema
  readonly #tools = new Map<string, RegisteredTool>()
  readonly #names = new PublishedNames()
  readonly #compiled = new Map<string, CompiledTool>()
  readonly #changes = new Emitter<null>(() => {})
  #sorted: readonly ToolDefinition[] | null = null

  constructor(compile: CompileSchema) {
    this.#compile = compile
  }

  /**
   * Adds a tool. @throws NodeError INVALID_INPUT with the faults for a definition that cannot be served (a schema whose
   * root is not an object, too), CONFLICT with the reason DUPLICATE_TOOL when the name is taken, OVERLOADED for one too
   * many.
   */
  register(
    definition: ToolDefinition,
    handler: ToolHandler,
    options: Pick<RegisteredTool, 'timeoutMs' | 'needsSlot'> = {}
  ): void {
    const faults = this.#faultsOf(definition)
    if (faults.length > 0) {
      const [{ path, message }] = faults as [SchemaFault]
      throw new NodeError('INVALID_INPUT', `not a tool: ${path} ${message}`, { data: { faults } })
    }
    const { name } = definition
    if (this.#tools.has(name)) throw duplicateTool(name)
    if (this.#tools.size >= MAX_TOOLS) throw new NodeError('OVERLOADED', `at most ${MAX_TOOLS} tools can be registered`)
    // Copies: later changes by the author must not differ from the compiled schema.
    const { schema: inputSchema, check: validator } = this.#compiledOf(definition.inputSchema)
    const kept = { ...definition, inputSchema }
    const { outputSchema } = definition
    const whole = outputSchema === undefined ? kept : { ...kept, outputSchema: this.#compiledOf(outputSchema).schema }
    this.#tools.set(name, { definition: whole, handler, validator, ...options })
    this.#names.add(name)
    this.#changed()
  }

  /** Removes a tool by its canonical name; calls of it that run go on. False when there is none. */
  unregister(name: string): boolean {
    if (!this.#tools.delete(name)) return false
    this.#names.delete(name)
    this.#changed()
    return true
  }

  /** By canonical or published name. */
  get(name: string): RegisteredTool | undefined {
    const canonical = this.#tools.has(name) ? name : this.#names.resolve(name)
    return canonical === undefined ? undefined : this.#tools.get(canonical)
  }

  /** All of them, by canonical name in the order of UTF-16 units. */
  list(): readonly ToolDefinition[] {
    this.#sorted ??= [...this.#tools.keys()].sort().map((name) => (this.#tools.get(name) as RegisteredTool).definition)
    return this.#sorted
  }

  /** Could it be registered? Whether its name is taken is not asked. */
  validateDefinition(definition: ToolDefinition): ValidationResult {
    const errors = this.#faultsOf(definition)
    return { valid: errors.length === 0, errors }
  }

  /** Calls back after each tool that came or went. */
  onChange(changed: () => void): () => void {
    return this.#changes.on(changed)
  }

  #changed(): void {
    this.#sorted = null
    this.#changes.emit(null)
  }

  #faultsOf({ name, description, inputSchema, outputSchema }: ToolDefinition): SchemaFault[] {
    const faults: SchemaFault[] = []
    if (typeof name !== 'string' || name.length === 0 || name.length > MAX_NAME || /\p{C}/u.test(name)) {
      faults.push({ path: '/name', message: `must be 1 to ${MAX_NAME} characters without control characters` })
    }
    if (typeof description !== 'string' || description.length > MAX_DESCRIPTION) {
      faults.push({ path: '/description', message: `must be a text of at most ${MAX_DESCRIPTION} characters` })
    }
    faults.push(...this.#schemaFaults('/inputSchema', inputSchema))
    if (outputSchema !== undefined) faults.push(...this.#schemaFaults('/outputSchema', outputSchema))
    return faults
  }

  #schemaFaults(path: string, schema: unknown): SchemaFault[] {
    if (!isRecord(schema) || schema['type'] !== 'object') return [{ path, message: "must have the root type 'object'" }]
    try {
      this.#compiledOf(schema)
      return []
    } catch (error) {
      return [{ path, message: messageOf(error) }]
    }
  }

  // By its text: registering the tenth thousand of tools with the same schema costs as much as the first hundred.
  #compiledOf(schema: ToolSchema): CompiledTool {
    const text = JSON.stringify(schema)
    const known = this.#compiled.get(text)
    if (known !== undefined) return known
    const check = this.#compile(schema)
    const compiled = { schema: JSON.parse(text) as ToolSchema, check }
    if (this.#compiled.size >= MAX_REMEMBERED) this.#compiled.clear()
    this.#compiled.set(text, compiled)
    return compiled
  }
}

/** The error of a tool whose name is taken. */
export function duplicateTool(tool: string): NodeError {
  return new NodeError(
    'CONFLICT',
    `there is a tool named ${JSON.stringify(tool)}, or shown so, already: take another name`,
    {
      data: { reason: 'DUPLICATE_TOOL', tool }
    }
  )
}
