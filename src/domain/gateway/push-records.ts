/** Digits of a generation in a key, so that keys are in the order of the numbers. */
const DIGITS = 8

/** Keys of push configs, pending notifications and dead letters. */
export const PUSH_KEYS = {
  config: (task: string, hook: string): string => `a2a-hook/${task}/${hook}`,
  notice: (hook: string, generation: number): string => `a2a-push/${hook}/${padded(generation)}`,
  dead: (hook: string, generation: number): string => `a2a-dead/${hook}/${padded(generation)}`
} as const

/** A part of the ledger. */
export interface KeyRange {
  readonly from: string
  readonly to: string
}

/** All push configs. */
export const CONFIG_RANGE: KeyRange = { from: 'a2a-hook/', to: 'a2a-hook0' }
/** All notifications that wait. */
export const NOTICE_RANGE: KeyRange = { from: 'a2a-push/', to: 'a2a-push0' }
/** The range of dead letters. */
export const DEAD_RANGE: KeyRange = { from: 'a2a-dead/', to: 'a2a-dead0' }

/** The push configs of a task. */
export function configRange(task: string): KeyRange {
  return { from: `a2a-hook/${task}/`, to: `a2a-hook/${task}0` }
}

/** The notifications of a hook, the oldest first. */
export function noticeRange(hook: string): KeyRange {
  return { from: `a2a-push/${hook}/`, to: `a2a-push/${hook}0` }
}

/** Hook and generation of a notification. */
export interface NoticeName {
  readonly hook: string
  readonly generation: number
}

/** Id of a notification, the same at every try. */
export function noticeId({ hook, generation }: NoticeName): string {
  return `${hook}.${generation}`
}

/** Reads the key of a notification, waiting or dead; null for another one. */
export function noticeNameOf(key: string): NoticeName | null {
  const [, hook, digits] = /^a2a-(?:push|dead)\/([^/]+)\/(\d+)$/.exec(key) ?? []
  return hook === undefined || digits === undefined ? null : { hook, generation: Number(digits) }
}

function padded(generation: number): string {
  return String(generation).padStart(DIGITS, '0')
}
