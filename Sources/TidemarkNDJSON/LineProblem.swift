internal import TidemarkEngine

/// The faults that a line of proper JSON can have.
package enum LineProblem: Sendable, Hashable {
  case duplicate(LineField)
  case exclusive(LineField, LineField)
  case notString(LineField)
  case notArray(LineField)
  case notInteger(LineField)
  case notBase64(LineField)
  case empty(LineField)
  case tooLong(LineField)
  case tooManyLabels
  case maxAgeRange
  case unknownOperation
  case unknownClass
  case badTime
  case keyMissing
  case valueMissing
  case valueUnwanted
  case labelsUnwanted
  case badAttachment
  case attachmentUnwanted

  /// Whether a bound is exceeded, rather than the format broken.
  package var isOutOfBounds: Bool {
    switch self {
    case .empty, .tooLong, .tooManyLabels, .maxAgeRange: true
    default: false
    }
  }
}

extension LineProblem: CustomStringConvertible {
  /// The fault, in words.
  package var description: String {
    switch self {
    case .duplicate(let field): "the field \(field.name) stands twice"
    case .exclusive(let a, let b): "\(a.name) and \(b.name) exclude each other; give one"
    case .notString(let field):
      field.holdsLabels
        ? "each label must be a string" : "\(field.name) must be a string, or be left out"
    case .notArray(let field): "\(field.name) must be an array of strings, or be left out"
    case .notInteger(let field): "\(field.name) must be a whole number, or be left out"
    case .notBase64(let field):
      (field.holdsLabels ? "a label of " : "")
        + "\(field.name) is not base64 (standard alphabet, with padding)"
    case .empty(let field): field.holdsLabels ? "a label is empty" : "the key is empty"
    case .tooLong(let field): Self.tooLong(field)
    case .tooManyLabels: "more than \(Limits.labelsPerEntry) labels"
    case .maxAgeRange: "max_age is outside 0 to \(UInt32.max) seconds"
    case .unknownOperation: "op must be put, delete or touch"
    case .unknownClass: "class must be owned or cache"
    case .badTime: "time must be an RFC 3339 date and time such as 2026-09-01T08:30:00Z"
    case .keyMissing: "the entry has no key; give key or key_base64"
    case .valueMissing: "a put needs a value; give value or value_base64"
    case .valueUnwanted: "only a put has a value"
    case .badAttachment: "attachment must be sha256:, 64 hexadecimal digits, : and the length"
    case .attachmentUnwanted: "only a put has an attachment"
    case .labelsUnwanted:
      "only a put has labels; a touch keeps those of the put, to change them put the key again"
    }
  }

  private static func tooLong(_ field: LineField) -> String {
    switch field {
    case .labels, .labelsBase64: "a label is longer than \(Limits.labelBytes) bytes"
    case .hash, .hashBase64: "the hash is longer than \(Limits.hashBytes) bytes"
    case .value, .valueBase64: "the value is larger than \(Limits.valueBytes >> 20) MiB"
    default: "the key is longer than \(Limits.keyBytes) bytes"
    }
  }
}
