/** Largest step of the serial in one certificate, so that no one can use the numbers up. */
export const SERIAL_MAX_STEP = 1_000_000

/** Why a value with this serial may not follow one with the serial `stored` (0: none), or null when it may. */
export function serialFault(stored: number, serial: number): string | null {
  if (serial <= stored) return 'a newer one is known'
  return serial - stored > SERIAL_MAX_STEP ? `its serial is more than ${SERIAL_MAX_STEP} ahead` : null
}
