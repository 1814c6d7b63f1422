internal import TidemarkEngine

/// The fields of a line.
package enum LineField: UInt8, Sendable, Hashable, CaseIterable {
  case op, key, keyBase64, value, valueBase64, labels, labelsBase64, time, hash, hashBase64
  case maxAge, entryClass, sequence, operationID, attachment

  /// The name in the file.
  package var name: StaticString {
    switch self {
    case .op: "op"
    case .key: "key"
    case .keyBase64: "key_base64"
    case .value: "value"
    case .valueBase64: "value_base64"
    case .labels: "labels"
    case .labelsBase64: "labels_base64"
    case .time: "time"
    case .hash: "hash"
    case .hashBase64: "hash_base64"
    case .maxAge: "max_age"
    case .entryClass: "class"
    case .sequence: "seq"
    case .operationID: "op_id"
    case .attachment: "attachment"
    }
  }

  /// Whether it is a list of labels.
  var holdsLabels: Bool { self == .labels || self == .labelsBase64 }

  /// The field of that name; nil when there is none.
  init?(named name: RawSpan) {
    // Length and first letter leave one candidate.
    guard let first = try? name.u8(at: 0) else { return nil }
    let candidate: LineField
    switch (name.byteCount, first) {
    case (2, UInt8(ascii: "o")): candidate = .op
    case (3, UInt8(ascii: "k")): candidate = .key
    case (3, UInt8(ascii: "s")): candidate = .sequence
    case (4, UInt8(ascii: "h")): candidate = .hash
    case (4, UInt8(ascii: "t")): candidate = .time
    case (5, UInt8(ascii: "v")): candidate = .value
    case (5, UInt8(ascii: "c")): candidate = .entryClass
    case (5, UInt8(ascii: "o")): candidate = .operationID
    case (6, UInt8(ascii: "l")): candidate = .labels
    case (7, UInt8(ascii: "m")): candidate = .maxAge
    case (10, UInt8(ascii: "k")): candidate = .keyBase64
    case (10, UInt8(ascii: "a")): candidate = .attachment
    case (11, UInt8(ascii: "h")): candidate = .hashBase64
    case (12, UInt8(ascii: "v")): candidate = .valueBase64
    case (13, UInt8(ascii: "l")): candidate = .labelsBase64
    default: return nil
    }
    guard name.holds(candidate.name) else { return nil }
    self = candidate
  }
}

/// A set of fields.
struct LineFieldSet: Hashable {
  private var bits: UInt16 = 0

  func contains(_ field: LineField) -> Bool { bits & 1 << UInt16(field.rawValue) != 0 }

  /// Adds a field; false when it is there already.
  mutating func insert(_ field: LineField) -> Bool {
    let isNew = !contains(field)
    bits |= 1 << UInt16(field.rawValue)
    return isNew
  }
}
