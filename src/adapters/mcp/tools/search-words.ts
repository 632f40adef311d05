/** Words of questions and sentences that say nothing about a tool. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about against after all also am an and another any are as at because before between be been by can could do does did during each every for from has have how i if in into is it its just like
  make many me more much my need of on only onto or other our out over please so some somebody someone something than that the their them then
  there these they this those through to under us using want was we were what when where which why will with would you your
  tool tools`.split(/\s+/)
)

/** Words for the same thing or action, one group a line. A question may use one and a tool another. */
const GROUPS: readonly string[] = [
  'delete remove erase discard trash',
  'create add new insert append',
  'list show display view print',
  'get fetch read retrieve obtain',
  'find search look locate query',
  'change edit update modify set alter',
  'run execute start launch trigger',
  'stop end halt terminate kill pause',
  'undo revert rollback restore',
  'rename move',
  'merge combine join unite',
  'send post deliver submit',
  'answer reply respond',
  'upload put store save write',
  'image picture photo photograph',
  'directory folder',
  'file document path',
  'date day week month year',
  'email mail inbox mailbox',
  'message text',
  'error failure fail problem crash broken',
  'log logs history',
  'bug issue defect',
  'event meeting appointment',
  'who whose person people colleague user attendee member assignee author owner',
  'customer client buyer',
  'money payment amount price',
  'refund repay reimburse back',
  'voice speech spoken recording audio',
  'text words transcript',
  'size width height big large small tiny resize shrink scale',
  'weather forecast rain temperature',
  'route directions drive travel distance',
  'database sql statement table select query postgres',
  'container docker',
  'web website page site browser',
  'song music track',
  'light lamp',
  'off disable',
  'on enable',
  'row line record',
  'spreadsheet sheet worksheet table excel',
  'remember memory fact observation',
  'time clock hour noon',
  'free available',
  'restart reboot',
  'build compile job pipeline',
  'space disk storage',
  'place location address near',
  'heating heat thermostat temperature warm',
  'code source program'
]

const SYNONYMS: ReadonlyMap<string, ReadonlySet<string>> = synonyms()

/** Weight of a word that means the same as a word of the question. */
const SYNONYM_WEIGHT = 0.5

/** The words of a text that say something, in their stems. `camelCase` and `snake_case` are several words. */
export function stemsOf(text: string): readonly string[] {
  return text
    .replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '' && !STOP_WORDS.has(word))
    .map(stemOf)
}

/** A question as a search takes it. */
export interface SearchWords {
  /** Weights of stems: words of the question count 1, words of the same meaning less. */
  readonly weights: ReadonlyMap<string, number>
  /** For each word of the question its stem and the stems of the same meaning. */
  readonly meanings: readonly ReadonlySet<string>[]
}

/** The words of a question and those of the same meaning. */
export function searchWords(question: string): SearchWords {
  const own = [...new Set(stemsOf(question))]
  const meanings = own.map((stem) => new Set([stem, ...(SYNONYMS.get(stem) ?? [])]))
  const weights = new Map<string, number>()
  for (const meaning of meanings)
    for (const stem of meaning) weights.set(stem, Math.min(1, (weights.get(stem) ?? 0) + SYNONYM_WEIGHT))
  for (const stem of own) weights.set(stem, 1)
  return { weights, meanings }
}

/** A word without its usual endings: `resized`, `resizes` and `resizing` are one word. */
export function stemOf(word: string): string {
  if (word.length <= 3) return word
  const single = word.endsWith('ies')
    ? `${word.slice(0, -3)}y`
    : /(?:ss|us|is)$/.test(word)
      ? word
      : word.replace(/(?<=(?:x|ch|sh|ss|z))es$|s$/, '')
  const plain = single.replace(/(?<=\w{3})(?:ing|ed|er|or|ion)$/, '')
  return plain.replace(/(?<=\w{2})(\w)\1$/, '$1').replace(/(?<=\w{3})[ey]$/, '')
}

function synonyms(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>()
  for (const group of GROUPS) {
    const stems = group.split(' ').map(stemOf)
    for (const stem of stems) found.set(stem, new Set([...(found.get(stem) ?? []), ...stems]))
  }
  return found
}
