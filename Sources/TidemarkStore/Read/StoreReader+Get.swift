public import TidemarkEngine

extension StoreReader {
  /// Reads the value of a key as bytes.
  /// - Returns: nil when there is no such key.
  /// - Throws: `damaged` (where) rather than a wrong value, `closed`, `inputOutput`.
  @inlinable
  public func value(forKey key: some BytesConvertible) throws(TidemarkError) -> [UInt8]? {
    var copy: [UInt8]?
    _ = try key.withBytes { (key) throws(TidemarkError) in
      try read(key) { value in copy = copyBytes(value) }
    }
    return copy
  }

  /// Reads the value of a key as text. Bytes that are not UTF-8 show as U+FFFD.
  /// - Returns: nil when there is no such key.
  public func text(forKey key: some BytesConvertible) throws(TidemarkError) -> String? {
    try value(forKey: key).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Calls `body` with a key's value, without a copy.
  ///
  /// ```swift
  /// let length = try store.withValue(forKey: "note/1") { bytes in bytes.byteCount }
  /// ```
  /// - Returns: what `body` returned; nil when there is no such key.
  @inlinable
  public func withValue<R>(
    forKey key: some BytesConvertible, _ body: (RawSpan) -> R
  ) throws(TidemarkError) -> R? {
    var result: R?
    _ = try key.withBytes { (key) throws(TidemarkError) in
      try read(key) { value in result = body(value) }
    }
    return result
  }

  /// Calls `body`, which may throw, with a key's value, without a copy.
  /// - Returns: what `body` returned; nil when there is no such key.
  /// - Throws: what `body` throws; else `TidemarkError`.
  @inlinable
  public func withValue<R, E: Error>(
    forKey key: some BytesConvertible, _ body: (RawSpan) throws(E) -> R
  ) throws -> R? {
    var result: R?
    var failure: E?
    _ = try key.withBytes { (key) throws(TidemarkError) in
      try read(key) { value in
        do throws(E) { result = try body(value) } catch { failure = error }
      }
    }
    if let failure { throw failure }
    return result
  }

  /// Appends a key's value to an array, which saves an allocation where many are read.
  /// - Returns: false when there is no such key; then nothing is appended.
  @inlinable
  public func appendValue(
    forKey key: some BytesConvertible, to bytes: inout [UInt8]
  ) throws(TidemarkError) -> Bool {
    try key.withBytes { (key) throws(TidemarkError) in
      try read(key) { value in appendBytes(value, to: &bytes) }
    }
  }

  /// Reads the newest entry of a key: its value, labels, times and other metadata.
  /// - Returns: nil when there is no such key.
  public func entry(forKey key: some BytesConvertible) throws(TidemarkError) -> Entry? {
    try entry(forKey: key, values: true, walks: true)
  }

  /// A key's newest entry.
  /// - Parameters:
  ///   - key: the key.
  ///   - values: whether to read the value too.
  ///   - walks: whether to walk the key's older versions to find `Entry.created`, where need be.
  package func entry(
    forKey key: some BytesConvertible, values: Bool, walks: Bool
  ) throws(TidemarkError) -> Entry? {
    let source = source
    // Open until the end of the call: compaction keeps the entry, and the put that a touch renews.
    let view = try source.pinned()
    return try key.withBytes { (key) throws(TidemarkError) in
      guard let found = try view.entry(forKey: key) else { return nil }
      return try source.entry(found, values: values, walks: walks)
    }
  }

  /// Whether the key has a value: false when it was never written, was deleted or was evicted.
  public func contains(_ key: some BytesConvertible) throws(TidemarkError) -> Bool {
    let source = source
    return try key.withBytes { (key) throws(TidemarkError) in
      if let view = source.view { return try view.entry(forKey: key) != nil }
      // Of the newest state the index alone tells, without a read of the log.
      return try source.engine.reader.slot(ofKey: key).map { !$0.isDeleted } ?? false
    }
  }

  /// Reads all kept versions of a key into an array, newest first, with deletes and touches.
  /// - Parameters:
  ///   - key: the key.
  ///   - limit: most versions to return; nil for all.
  ///   - values: whether to read the values too.
  public func history(
    ofKey key: some BytesConvertible, limit: Int? = nil, values: Bool = true
  ) throws(TidemarkError) -> [Entry] {
    var versions = try versions(ofKey: key, values: values)
    var entries: [Entry] = []
    while entries.count < limit ?? .max, let version = try versions.next() {
      entries.append(version)
    }
    return entries
  }

  /// The versions of a key that are kept, newest first, read when they are asked for: a key may
  /// have millions.
  ///
  /// ```swift
  /// var versions = try store.versions(ofKey: "note/1")
  /// while let version = try versions.next() { print(version.sequence, version.kind) }
  /// ```
  /// - Parameters:
  ///   - key: the key.
  ///   - values: whether to read the values too.
  /// - Throws: `damaged` and `inputOutput` when the key cannot be looked up.
  public func versions(
    ofKey key: some BytesConvertible, values: Bool = true
  ) throws(TidemarkError) -> VersionRows {
    let source = source
    let view = try source.pinned()
    let walk = try key.withBytes { (key) throws(TidemarkError) in
      try VersionWalk(source.engine.reader, ofKey: key, upTo: view.sequence)
    }
    return VersionRows(source, view, walk, values: values)
  }
}

@usableFromInline
func copyBytes(_ value: RawSpan) -> [UInt8] { [UInt8](copying: value) }
@usableFromInline
func appendBytes(_ value: RawSpan, to bytes: inout [UInt8]) { bytes.append(copying: value) }
