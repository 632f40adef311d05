import type { HealthFinding } from '../../../ports/agent-runtime.js'
import { messageOf } from '../../../kit/errors.js'
import type { LlmDeps } from './llm-parts.js'

/** Answers by which a server refuses its key: no question will be answered either. */
const REFUSED: ReadonlySet<number> = new Set([401, 403])

/**
 * Is the provider there, and does it take the key? Asks for its list of models, which costs nothing; servers without
 * one are there all the same.
 */
export async function checkProvider(
  llm: LlmDeps | undefined,
  name: string,
  signal: AbortSignal
): Promise<HealthFinding> {
  const unhealthy = (reason: string): HealthFinding => ({ state: 'unhealthy', reason })
  try {
    const provider = (await llm?.provider(name)) ?? null
    if (llm === undefined || provider === null) return unhealthy(`there is no LLM provider ${name} in the config`)
    const { url, apiKey, headers } = provider
    const key = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }
    const asked = llm.fetch(`${url.replace(/\/+$/, '')}/models`, {
      headers: { ...headers, ...key },
      signal,
      redirect: 'manual'
    })
    const response = await asked.catch(() => null)
    if (response === null) return unhealthy(`the LLM provider ${name} cannot be reached`)
    response.body?.cancel().catch(() => {})
    if (REFUSED.has(response.status))
      return unhealthy(`the LLM provider ${name} does not take its key (HTTP ${response.status})`)
    if (response.status < 500) return { state: 'healthy', reason: null }
    return { state: 'degraded', reason: `the LLM provider ${name} answers with HTTP ${response.status}` }
  } catch (error) {
    return unhealthy(messageOf(error))
  }
}
