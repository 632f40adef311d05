import { z } from 'zod'
import { type AgentProvider, organizationFault, PROVIDER_FORM, providerUrlFault } from '../kit/names/provider.js'

function member(fault: (text: string) => string | null): z.ZodType<string> {
  const error = ({ input }: { readonly input?: unknown }): string =>
    input === undefined ? 'is missing' : 'must be text'
  return z.string({ error }).superRefine((text, context) => {
    const reason = fault(text)
    if (reason !== null) context.addIssue(reason)
  })
}

/** `a2a.provider`. */
export const providerSettingSchema: z.ZodType<AgentProvider | null> = z
  .strictObject(
    { organization: member(organizationFault), url: member(providerUrlFault) },
    { error: (issue) => (issue.code === 'invalid_type' ? `must be a mapping of ${PROVIDER_FORM}` : undefined) }
  )
  .nullable()
