import { z } from 'zod'

/** Text of 1 to `max` characters in an agent file. */
export const Text = (max: number): z.ZodString => z.string().min(1).max(max)

/** Variables of the process of an agent. Numbers and booleans become text. */
export const EnvironmentBlock = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name that an environment variable may have'),
    z.union([z.string().max(32_768), z.number(), z.boolean()], { error: 'must be text' }).transform(String)
  )
  .default({})
