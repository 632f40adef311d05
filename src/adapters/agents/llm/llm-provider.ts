import type { LlmDeps, LlmProvider, LlmSpec } from './llm-parts.js'

/** A provider and the model to ask, or the reason why there is none, for callers. */
export type UsableProvider =
  | { readonly ok: true; readonly provider: LlmProvider; readonly model: string }
  | { readonly ok: false; readonly reason: string }

/**
 * Looks up a provider and its model. `onFault` receives the fault of a provider that is not set up: it may hold names
 * of secrets.
 */
export async function usableProvider(
  llm: LlmDeps,
  { provider: name, model: given }: Pick<LlmSpec, 'provider' | 'model'>,
  onFault: (error: unknown) => void
): Promise<UsableProvider> {
  let provider: LlmProvider | null
  try {
    provider = await llm.provider(name)
  } catch (error) {
    onFault(error)
    return { ok: false, reason: `the LLM provider ${name} is not set up on the agent's node; its log says why` }
  }
  if (provider === null) return { ok: false, reason: `the config of the agent's node has no LLM provider ${name}` }
  const model = given ?? provider.model
  if (model === null) return { ok: false, reason: `neither the agent nor the LLM provider ${name} names a model` }
  return { ok: true, provider, model }
}
