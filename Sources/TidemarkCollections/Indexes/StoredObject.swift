internal import TidemarkEngine

/// The bytes of an object with their schema.
struct StoredObject {
  var bytes: [UInt8]
  var sequence: UInt64
  var version: UInt32
}

extension EngineView {
  /// The value of a key with its schema; nil when it is absent.
  func stored(_ key: [UInt8]) throws(TidemarkError) -> StoredObject? {
    guard let entry = try entry(forKey: key.rawSpan) else { return nil }
    return try stored(reader.info(entry))
  }

  /// The value of an entry that puts one, with its schema.
  func stored(_ info: EntryInfo) throws(TidemarkError) -> StoredObject {
    let bytes = try reader.withValue(of: info.valueSequence) { (value, _) in
      [UInt8](copying: value)
    }
    return StoredObject(
      bytes: bytes, sequence: info.sequence, version: info.attributes.schemaVersion)
  }
}
