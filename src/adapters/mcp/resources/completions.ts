import { type CompleteResult, ProtocolError, type Server } from '@modelcontextprotocol/server'
import { type Completing, type Completion, MAX_VALUES } from './completing.js'
import type { PromptSource } from './prompt-source.js'
import type { ResourceSource } from './resource-source.js'
import { JSON_RPC } from '../server/structured-error.js'

/** Dependencies of {@link serveCompletions}. */
export interface CompletionDeps {
  readonly prompts?: PromptSource | undefined
  readonly resources?: ResourceSource | undefined
  /** Turns an error of a source into an error of the protocol. */
  complete<T>(given: Promise<T>): Promise<T>
}

/** Is there anything that completes? */
export function canComplete({ prompts, resources }: Pick<CompletionDeps, 'prompts' | 'resources'>): boolean {
  return prompts?.complete !== undefined || resources?.complete !== undefined
}

/** Answers `completion/complete` with the values of an argument that begin with the text so far. */
export function serveCompletions(server: Server, deps: CompletionDeps): void {
  server.setRequestHandler(
    'completion/complete',
    async ({ params: { ref, argument, context } }): Promise<CompleteResult> => {
      const completing = { argument: argument.name, value: argument.value, given: context?.arguments ?? {} }
      const values = await deps.complete(
        ref.type === 'ref/prompt' ? ofPrompt(deps, ref.name, completing) : ofResource(deps, ref.uri, completing)
      )
      if (!isList(values)) return { completion: values }
      const fitting = [...new Set(values)].filter((one) => one.startsWith(argument.value))
      return {
        completion: {
          values: fitting.slice(0, MAX_VALUES),
          total: fitting.length,
          hasMore: fitting.length > MAX_VALUES
        }
      }
    }
  )
}

async function ofPrompt(
  { prompts }: CompletionDeps,
  name: string,
  completing: Completing
): Promise<readonly string[] | Completion> {
  const values = await prompts?.complete?.(name, completing)
  if (values !== undefined) return values
  const known = (await prompts?.list()) ?? []
  if (known.some((one) => one.name === name)) return []
  throw new ProtocolError(JSON_RPC.INVALID_PARAMS, `there is no prompt ${JSON.stringify(name)}`)
}

async function ofResource(
  { resources }: CompletionDeps,
  uri: string,
  completing: Completing
): Promise<readonly string[] | Completion> {
  const values = await resources?.complete?.(uri, completing)
  if (values !== undefined) return values
  const known = (await resources?.templates?.()) ?? []
  if (known.some((one) => one.uriTemplate === uri)) return []
  throw new ProtocolError(JSON_RPC.INVALID_PARAMS, `there are no resources ${JSON.stringify(uri)}`)
}

function isList(values: readonly string[] | Completion): values is readonly string[] {
  return Array.isArray(values)
}
