/** Colours and weights that {@link Output.paint} gives, and no others: a hidden text is none of them. */
const KEPT = String.raw`\u001b\[(?:[012]|3[1236])m|\n|\t`
// Control characters, and invisible ones that change the direction or make two texts look alike. Selectors of the form
// of an emoji stay.
const UNSAFE = String.raw`[\p{Cc}\u2028\u2029]|(?![\ufe0e\ufe0f])\p{Default_Ignorable_Code_Point}`
const PATTERN = new RegExp(`(${KEPT})|${UNSAFE}`, 'gu')

/** A place that text is written to; what a process stream and a test have in common. */
export interface Sink {
  write(text: string | Uint8Array): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

/** Text as a terminal may get it: nothing in it moves the cursor, changes the terminal, or hides what stands there. */
export function terminalText(text: string): string {
  return text.replace(PATTERN, (_, kept: string | undefined) => kept ?? '')
}
