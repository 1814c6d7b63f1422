// Every encrypted file has a key of its own, which its header holds encrypted with a key of the
// user's. MANIFEST names the user's keys by their ids.
extension Manifest {
  /// Ids of the user's keys in use: the key for new files first, then those that old files need.
  package var keyIDs: [Encryption.KeyID] {
    var ids = keyID.map { [$0] } ?? []
    for id in segments.compactMap(\.keyID) + runs.compactMap(\.keyID) where !ids.contains(id) {
      ids.append(id)
    }
    return ids
  }

  /// Whether anything in the store is encrypted, or is going to be.
  package var isEncrypted: Bool { !keyIDs.isEmpty }

  /// How many segments and runs still need another key than new files; 0 unless a change of keys is
  /// not finished. Without a key for new files, the files that are still encrypted.
  package var filesToRewrite: Int {
    (segments.map(\.keyID) + runs.map(\.keyID)).count { $0 != keyID }
  }

  /// Encodes which of the user's keys each file needs.
  ///
  /// ```
  /// varint count | 16 bytes each: ids of keys
  /// varint: the key for new files
  /// varint for each segment | varint for each sorted run: its key
  /// ```
  /// Keys are counted from 1; 0 stands for none.
  func encodeKeys(into writer: inout ByteWriter) {
    let ids = keyIDs
    func number(_ id: Encryption.KeyID?) -> Int {
      id.flatMap { ids.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
    }
    writer.varint(ids.count)
    for id in ids { writer.raw(id.bytes) }
    writer.varint(number(keyID))
    for segment in segments { writer.varint(number(segment.keyID)) }
    for run in runs { writer.varint(number(run.keyID)) }
  }

  /// Decodes the same into the rows of segments and sorted runs, which are decoded already.
  mutating func decodeKeys(_ reader: inout ByteReader) throws(FormatError) {
    var ids: [Encryption.KeyID] = []
    for _ in 0..<(try reader.varint(atMost: Limits.keys)) {
      guard let id = Encryption.KeyID(try reader.array(16)) else {
        throw FormatError("a key without an id in the manifest")
      }
      ids.append(id)
    }
    func next() throws(FormatError) -> Encryption.KeyID? {
      let number = try reader.varint(atMost: ids.count)
      return number == 0 ? nil : ids[number - 1]
    }
    keyID = try next()
    for i in segments.indices { segments[i].keyID = try next() }
    for i in runs.indices { runs[i].keyID = try next() }
    guard isEncrypted else { throw FormatError("no key in the manifest of an encrypted store") }
  }
}
