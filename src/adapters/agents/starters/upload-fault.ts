/**
 * Why an upload was refused, for programs. `exists`: the target exists; `no-upload`: `files.write` opened none for it;
 * `other-disk`: the directory is on another disk than the granted one;
 * `gap`: the range begins after the end of the upload; `checksum`: its bytes are others than `files.write` announced.
 */
export type UploadReason =
  | 'exists'
  | 'special'
  | 'other-disk'
  | 'no-upload'
  | 'gap'
  | 'checksum'
  | 'too-many'
  | 'no-space'

/** A refused upload. */
export class UploadFault extends Error {
  readonly reason: UploadReason

  constructor(reason: UploadReason, message: string) {
    super(message)
    this.name = 'UploadFault'
    this.reason = reason
  }
}
