import { z } from 'zod'
import type { Setting } from './settings.js'

/** Words of a program for notices: it, and its arguments. */
const MAX_NOTIFY_WORDS = 32
/** Characters of one of them. */
const MAX_NOTIFY_WORD = 1024

/** How the owner gets notices of pending approvals; null: not at all. A list is a program with its arguments. */
type NotifySetting = 'desktop' | readonly string[] | null

const notifySchema: z.ZodType<NotifySetting> = z.union([
  z.null(),
  z.literal('desktop'),
  z
    .array(
      z
        .string()
        .min(1)
        .max(MAX_NOTIFY_WORD)
        .regex(/^[^\0]*$/)
    )
    .min(1)
    .max(MAX_NOTIFY_WORDS)
])

/** The setting `policy.notify`. */
export const NOTIFY: Setting<NotifySetting> = {
  schema: notifySchema,
  fallback: null,
  form: 'mapping',
  unit: null,
  allowed: `desktop, or a list of a program and its arguments, at most ${MAX_NOTIFY_WORDS} of ${MAX_NOTIFY_WORD} characters; in the config file only`,
  about: 'Notice of each new pending approval: on the desktop, or by a program with its JSON on stdin.'
}
