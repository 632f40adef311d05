import { z } from 'zod'
import {
  type AgentProvider,
  ORGANIZATION_MAX,
  organizationFault,
  PROVIDER_FORM,
  PROVIDER_URL_MAX,
  providerUrlFault
} from '../kit/names/provider.js'
import type { Setting } from './settings.js'

function member(fault: (text: string) => string | null): z.ZodType<string> {
  const error = ({ input }: { readonly input?: unknown }): string =>
    input === undefined ? 'is missing' : 'must be text'
  return z.string({ error }).superRefine((text, context) => {
    const reason = fault(text)
    if (reason !== null) context.addIssue(reason)
  })
}

const providerSettingSchema: z.ZodType<AgentProvider | null> = z
  .strictObject(
    { organization: member(organizationFault), url: member(providerUrlFault) },
    { error: (issue) => (issue.code === 'invalid_type' ? `must be a mapping of ${PROVIDER_FORM}` : undefined) }
  )
  .nullable()

/** The setting `a2a.provider`. */
export const PROVIDER: Setting<AgentProvider | null> = {
  schema: providerSettingSchema,
  fallback: null,
  form: 'mapping',
  unit: null,
  allowed: `a mapping of ${PROVIDER_FORM}: a line of at most ${ORGANIZATION_MAX} characters, and an http or https URL of at most ${PROVIDER_URL_MAX}; in the config file only`,
  about:
    'The organization that offers this node and its agents, on their A2A cards; a2a.provider of an agent file goes before it.'
}
