import { EXIT } from '../exit-codes.js'
import { jsonLine, type Output } from './output.js'

/** Shows a watch to its end: drawn in place on a terminal, NDJSON with `--json`. */
export async function showWatch<T extends object>(
  output: Output,
  watch: AsyncIterable<T>,
  form: { readonly schema: string; lines(item: T): Promise<string[]> | string[]; json?(item: T): object }
): Promise<number> {
  const screen = output.screen()
  for await (const item of watch) {
    if (output.json) output.print(jsonLine({ schema: `a2a-node/${form.schema}`, ...(form.json?.(item) ?? item) }))
    else screen.draw(await form.lines(item))
  }
  return EXIT.ok
}
