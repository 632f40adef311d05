/**
 * How many hostile inputs a property gets at most, those of one stream counted as if it were full: `few` in `npm test`,
 * HOSTILE_INPUTS in `npm run hostile`.
 */
export function hostileInputs(few: number): number {
  const asked = Number(process.env.HOSTILE_INPUTS ?? few)
  if (!Number.isSafeInteger(asked) || asked < 1) throw new Error('HOSTILE_INPUTS is a whole number from 1')
  return asked
}
