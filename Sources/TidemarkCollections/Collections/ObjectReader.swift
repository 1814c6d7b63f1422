public import TidemarkEngine

extension ObjectReader {
  /// Reads an object by its id.
  /// - Returns: nil when there is none.
  /// - Throws: `coding` when it cannot be decoded, with the field; `damaged`, `closed`.
  public func get(_ id: ID) throws(TidemarkError) -> Object? {
    try core.object(id, in: source.view, isUse: source.view == nil)
  }

  /// Whether the collection has an object with an id.
  public func contains(_ id: ID) throws(TidemarkError) -> Bool {
    let key = try core.key(id)
    return try source.pinned().entry(forKey: key.rawSpan) != nil
  }

  /// Counts the objects. Objects that cannot be read count too.
  /// - Parameter labels: only objects with these labels.
  public func count(labels: LabelFilter = .everything) throws(TidemarkError) -> Int {
    var count = 0
    try source.scan(query(labels, false, nil, values: false)) { (_, _) throws(TidemarkError) in
      count += 1
      return true
    }
    return count
  }

  /// Reads all objects into an array, in the order of their ids' bytes.
  /// - Parameters:
  ///   - labels: only objects with these labels.
  ///   - descending: whether the last comes first.
  ///   - limit: most objects to return; nil for all.
  ///   - unreadable: is told of objects that cannot be read, which are left out then; where nothing
  ///     is given, the first one is an error.
  public func all(
    labels: LabelFilter = .everything, descending: Bool = false, limit: Int? = nil,
    unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> [Object] {
    var objects: [Object] = []
    try forEach(labels: labels, descending: descending, limit: limit, unreadable: unreadable) {
      objects.append($0)
    }
    return objects
  }

  /// Calls `body` with one object after the other, so that they need not all be in memory.
  /// - Parameters:
  ///   - labels: only objects with these labels.
  ///   - descending: whether the last comes first.
  ///   - limit: most objects; nil for all.
  ///   - unreadable: is told of objects that cannot be read, which are left out then.
  ///   - body: is called with each object.
  public func forEach(
    labels: LabelFilter = .everything, descending: Bool = false, limit: Int? = nil,
    unreadable: ((TidemarkError) -> Void)? = nil, _ body: (Object) -> Void
  ) throws(TidemarkError) {
    let tell = UnreadableObjects(told: unreadable)
    try forEachRows(query(labels, descending, limit)) { (rows, view) throws(TidemarkError) in
      for answer in try core.fetch(view).fetch(rows) {
        // Objects at hand would be served beyond the end of the store's being open.
        try source.engine.reader.checkReadable()
        if let box = try tell.box(answer, of: core) { body(box.object) }
      }
    }
  }

  /// Calls `body` with the rows of a query, some at a time, and with their state.
  func forEachRows(
    _ query: EntryQuery, _ body: (ArraySlice<ScanRow>, EngineView) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    guard let scan = try source.scan(query, after: .start) else { return }
    var pages = PageSizes(limit: query.limit)
    while let size = pages.next() {
      let rows = try scan.nextPage(limit: size)
      if rows.isEmpty { return }
      pages.took(rows.count)
      // Objects may be large, and few of them are to be in memory.
      for first in stride(from: 0, to: rows.count, by: 32) {
        try body(rows[first...].prefix(32), scan.view)
      }
    }
  }

  /// Reads the ids of all objects, in the order of their bytes, without reading the objects.
  /// - Parameters:
  ///   - labels: only objects with these labels.
  ///   - unreadable: is told of keys that end with no id, which are left out then; where nothing is
  ///     given, the first one is an error.
  public func ids(
    labels: LabelFilter = .everything, unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> [ID] {
    var ids: [ID] = []
    let tell = UnreadableObjects(told: unreadable)
    try forEachRows(query(labels, false, nil, values: false)) { (rows, _) throws(TidemarkError) in
      for row in rows {
        let id = try tell.readable { () throws(TidemarkError) in
          try core.id(ofObject: row.key[core.prefix.count...])
        }
        if let id { ids.append(id) }
      }
    }
    return ids
  }

  private func query(
    _ labels: LabelFilter, _ descending: Bool, _ limit: Int?, values: Bool = true
  ) -> EntryQuery {
    EntryQuery(
      prefix: core.prefix, labels: labels, descending: descending, limit: limit, values: values)
  }

  /// Reads the kept versions of an object, newest first.
  /// - Parameters:
  ///   - id: the object's id.
  ///   - limit: most versions; nil for all.
  public func history(
    of id: ID, limit: Int? = nil
  ) throws(TidemarkError) -> [ObjectVersion<Object>] {
    let key = try core.key(id)
    let view = try source.pinned()
    var walk = try VersionWalk(source.engine.reader, ofKey: key.rawSpan, upTo: view.sequence)
    var versions: [ObjectVersion<Object>] = []
    while versions.count < limit ?? .max, let entry = try walk.next() {
      guard try view.shows(entry) else { continue }
      let info = try source.engine.reader.info(entry)
      var version = ObjectVersion<Object>(
        object: nil, sequence: info.sequence, time: HybridTime(info.commitTime).timestamp)
      if info.kind == .put || info.kind == .touch {
        let stored = try view.stored(info)
        let tell = UnreadableObjects { version.unreadable = $0 }
        version.object = try tell.readable { () throws(TidemarkError) in
          try core.codec.decode(
            stored.bytes, version: stored.version, id: key[core.prefix.count...])
        }
      }
      versions.append(version)
    }
    return versions
  }
}

extension ObjectCollection {
  /// Returns the key under which the store holds the object with an id.
  /// - Throws: `invalidArgument` for an id without bytes.
  public func key(for id: ID) throws(TidemarkError) -> Key { Key(try core.key(id)) }

  /// Returns the id of the object that a store entry is about; nil for an entry of something else.
  public func id(of entry: Entry) -> ID? {
    let key = entry.key.bytes
    guard key.starts(with: core.prefix), key.count > core.prefix.count else { return nil }
    return core.id(ofKey: key)
  }

  /// Decodes the object that a store entry has written. Nil for a delete, and for an entry of
  /// something else. The entry must have its value.
  /// - Throws: `coding` when it cannot be decoded.
  public func object(of entry: Entry) throws(TidemarkError) -> Object? {
    guard id(of: entry) != nil, entry.kind == .put || entry.kind == .touch else { return nil }
    return try core.codec.decode(
      entry.value, version: entry.schemaVersion, id: entry.key.bytes[core.prefix.count...])
  }
}

/// One kept version of an object, as ``ObjectReader/history(of:limit:)`` lists them.
public struct ObjectVersion<Object: Sendable>: Sendable {
  /// The object in this version; nil where it was deleted, or cannot be read.
  public var object: Object?
  /// The error with which reading this version failed; nil when it succeeded, and for a delete.
  public var unreadable: TidemarkError?
  /// The sequence of the entry that holds this version; a higher one is a newer version.
  public var sequence: UInt64
  /// The time at which this version was committed, by the store's clock.
  public var time: Timestamp
}
