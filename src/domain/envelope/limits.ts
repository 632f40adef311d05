/**
 * Bounds of an envelope on the wire; sender and receiver hold to the same ones. Sizes in bytes, lengths in UTF-16
 * units.
 */
export const ENVELOPE_LIMITS = {
  /** Everything before the body, the table of attachments included. */
  maxHeaderBytes: 8192,
  /** Header, JSON and attachments together. */
  maxBytes: 16 * 1_048_576,
  /** The JSON part of the payload, attachments lifted out. */
  maxJsonBytes: 1_048_576,
  maxAttachments: 64,
  /** Longer strings of a payload travel as attachments. */
  maxInlineText: 16_384,
  maxIdLength: 64,
  /** Sender, recipient and correlation id. */
  maxNameLength: 128,
  maxSandboxIdLength: 128,
  maxJustificationBytes: 1024,
  maxHops: 8
} as const
