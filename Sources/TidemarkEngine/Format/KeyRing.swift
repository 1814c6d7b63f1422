/// The user's keys, which encrypt the keys of the files. A *source* (`Encryption`) is asked for
/// each key once, and the ring keeps it for as long as the store is open.
package final class KeyRing: Sendable {
  private struct State {
    /// The first gives the key for new files; all are asked for keys of files that exist. There is
    /// more than one while keys are being changed.
    var sources: [Encryption]
    var keys: [Encryption.KeyID: [UInt8]] = [:]
    /// The id of the key for new files; nil until it is asked for.
    var current: Encryption.KeyID?
  }

  /// Held while a source is asked, so that it is asked once: a source must not use the store.
  private let state: Lock<State>

  /// Whether a source was given for the store as it is, and not only for a change of keys.
  private let wasGiven: Bool

  /// - Parameters:
  ///   - encryption: the source of the store's keys; nil where nothing is encrypted.
  ///   - next: the source that a change of keys goes over to. It comes second, for files that an
  ///     interrupted change has left; new files get its key once ``adopt(_:)`` puts it first.
  package init(_ encryption: Encryption? = nil, beside next: Encryption? = nil) {
    wasGiven = encryption != nil
    state = Lock(State(sources: [encryption, next].compactMap { $0 }))
  }

  /// Whether no keys are known.
  package var isEmpty: Bool { state.withLock { $0.sources.isEmpty } }

  /// Makes sure that all keys that a store needs are there, and that none was given without need.
  /// - Parameter writes: whether a key for new files is needed, too.
  /// - Throws: `keyMissing`, `wrongKey`, `notEncrypted`.
  package func check(_ manifest: Manifest, writes: Bool) throws(TidemarkError) {
    guard manifest.isEncrypted else {
      guard !wasGiven else {
        throw TidemarkError(
          .notEncrypted,
          "a key was given and the store is not encrypted; leave the key out, or encrypt the "
            + "store by a compaction with a new key")
      }
      // Only `next` can be there: the store stays plain until a compaction adopts it.
      state.withLock { $0.sources.removeAll() }
      return
    }
    for id in manifest.keyIDs { _ = try key(id) }
    if writes { _ = try current() }
  }

  /// The id of the key that new files are written with; nil when they are not encrypted.
  package func current() throws(TidemarkError) -> Encryption.KeyID? {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      if let current = state.current { return current }
      guard let source = state.sources.first else { return nil }
      let (id, key) = try Self.currentKey(of: source)
      state.keys[id] = key
      state.current = id
      return id
    }
  }

  /// Lets the key for new files be asked for again: another process may have changed keys.
  package func forgetCurrent() { state.withLock { $0.current = nil } }

  /// Puts a source first: from now on new files are encrypted with its key.
  /// - Returns: the id of the key for new files until then, for `abandon`.
  package func adopt(_ encryption: Encryption) throws(TidemarkError) -> Encryption.KeyID? {
    let former = try current()
    let (id, key) = try Self.currentKey(of: encryption)
    state.withLock { state in
      state.sources.insert(encryption, at: 0)
      state.keys[id] = key
      state.current = id
    }
    return former
  }

  /// Takes the source away that was adopted last; `former` is what ``adopt(_:)`` returned.
  package func abandon(for former: Encryption.KeyID?) {
    state.withLock { state in
      state.sources.removeFirst()
      state.current = former
    }
  }

  /// A key by its id.
  /// - Throws: `keyMissing` when no keys were given, `wrongKey` when this one is not among them.
  package func key(_ id: Encryption.KeyID) throws(TidemarkError) -> [UInt8] {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      if let known = state.keys[id] { return known }
      guard !state.sources.isEmpty else { throw Self.missing() }
      for source in state.sources {
        let found: [UInt8]?
        do { found = try source.find(id) } catch { throw Self.refused(error) }
        // A source may give its only key whatever is asked for.
        guard let found, Encryption.id(ofKey: found) == id else { continue }
        state.keys[id] = found
        return found
      }
      try Self.checkAvailable()
      throw TidemarkError(
        .wrongKey, "the store is encrypted with another key, whose id is \(id); give that one")
    }
  }

  /// Draws a key for a new file.
  /// - Parameters:
  ///   - id: the user's key that is to wrap it; nil for a file that is not encrypted.
  ///   - random: gives as many unpredictable bytes as it is asked for.
  package func newFileKey(
    _ id: Encryption.KeyID?, random: (Int) -> [UInt8]
  ) throws(TidemarkError) -> NewFileKey? {
    guard let id else { return nil }
    return NewFileKey(keyID: id, userKey: try key(id), random: random(NewFileKey.randomBytes))
  }

  /// A source that gives the keys of this ring, for opening the store once more.
  package var encryption: Encryption? {
    guard !isEmpty else { return nil }
    return .key { id in
      if let id { return try self.key(id) }
      return try self.current().map { try self.key($0) } ?? nil
    }
  }

  private static func currentKey(
    of source: Encryption
  ) throws(TidemarkError) -> (Encryption.KeyID, [UInt8]) {
    try checkAvailable()
    let found: [UInt8]?
    do { found = try source.find(nil) } catch { throw refused(error) }
    guard let found else { throw missing() }
    guard let id = Encryption.id(ofKey: found) else {
      throw TidemarkError(
        .invalidArgument,
        "an encryption key of \(found.count) bytes; a key has \(Encryption.keyBytes) bytes")
    }
    return (id, found)
  }

  private static func checkAvailable() throws(TidemarkError) {
    guard Encryption.isAvailable else {
      throw TidemarkError(
        .encryptionUnavailable,
        "this build cannot encrypt or decrypt; build with the package's trait Encryption")
    }
  }

  package static func missing() -> TidemarkError {
    guard Encryption.isAvailable else {
      return TidemarkError(
        .encryptionUnavailable,
        "the store is encrypted and this build cannot decrypt; build with the package's trait "
          + "Encryption")
    }
    return TidemarkError(.keyMissing, "the store is encrypted; give its key")
  }

  private static func refused(_ error: any Error) -> TidemarkError {
    if let error = error as? TidemarkError { return error }
    return TidemarkError(
      .keyMissing, "the encryption key could not be got; see the cause", cause: error)
  }
}
