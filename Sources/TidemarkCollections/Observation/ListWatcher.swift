internal import TidemarkEngine

/// Keeps the answer of a query up with the objects that change: a change costs a look at that
/// object's rows, not at the list's.
final class ListWatcher<Object: Sendable, ID: CollectionID>: Watcher {
  private struct List {
    /// Whether objects that are equal in the order come from the last id to the first. It stays as
    /// it was, since the plan may turn it when an index becomes complete.
    let isReversed: Bool
    var rows: [FoundObject] = []
    var objects: [ObjectBox<Object>] = []
    var ids: [ID] = []
    /// The terms that each object is sorted by.
    var terms: [[UInt8]: [UInt8]] = [:]
    /// Why objects cannot be read, by their ids as errors name them.
    var unreadable: [String?: TidemarkError] = [:]
  }

  let held: HeldWatch
  private let core: CollectionCore<Object, ID>
  private let condition: ObjectCondition<Object>
  private let order: [ObjectOrder<Object>]
  private let limit: Int?
  private let list = Lock<List?>(nil)

  init(
    _ core: CollectionCore<Object, ID>, _ condition: ObjectCondition<Object>,
    _ order: [ObjectOrder<Object>], _ limit: Int?
  ) {
    held = core.store.hub.watch(prefix: core.prefix)
    self.core = core
    self.condition = condition
    self.order = order
    self.limit = limit
  }

  func look() throws -> ObjectList<Object, ID>? {
    try held.look { (news) throws(TidemarkError) in
      try list.withLock { (list: inout List?) throws(TidemarkError) in
        // Taken out, so that what is changed is changed in place.
        guard var now = list.take() else {
          let all = try asked()
          list = all
          return Self.told(all, ObjectListChanges(inserted: all.ids))
        }
        defer { list = now }
        guard !news.isEmpty else { return nil }
        var changes = ObjectListChanges<ID>()
        let unreadable = now.unreadable.mapValues(\.message)
        if news.isAll {
          try askAnew(&now, &changes)
        } else {
          try take(Set(news.keys), &now, &changes)
        }
        let isSame = changes.isEmpty && now.unreadable.mapValues(\.message) == unreadable
        return isSame ? nil : Self.told(now, changes)
      }
    }
  }

  private static func told(
    _ list: List, _ changes: ObjectListChanges<ID>
  ) -> ObjectList<Object, ID> {
    ObjectList(
      boxes: list.objects, ids: list.ids, changes: changes,
      unreadable: list.unreadable.sorted { ($0.key ?? "") < ($1.key ?? "") }.map(\.value))
  }

  private func askAnew(
    _ list: inout List, _ changes: inout ObjectListChanges<ID>
  ) throws(TidemarkError) {
    let now = try asked(reversed: list.isReversed)
    changes = difference(list, now)
    list = now
  }

  /// The whole answer.
  /// - Parameter direction: that of the list before; nil for the first one.
  private func asked(reversed direction: Bool? = nil) throws(TidemarkError) -> List {
    let query = try ObjectQuery(core, condition, order)
    var list = List(isReversed: direction ?? query.rows.plan.isReversed)
    let tell = UnreadableObjects { error in
      list.unreadable[error.object?.id] = error
    }
    let known = try query.tellUnindexed(tell)
    let found = try query.rows.found(limit: limit, after: nil, reversed: list.isReversed)
    try query.forEach(found, known: known, tell) { place, box in
      let row = found[place]
      guard let id = ID.id(ofKeyBytes: row.id[...]) else { return }
      list.rows.append(row)
      list.objects.append(box)
      list.ids.append(id)
      list.terms[row.id] = row.terms
    }
    return list
  }

  /// Takes up what was written of some objects.
  private func take(
    _ keys: Set<[UInt8]>, _ list: inout List, _ changes: inout ObjectListChanges<ID>
  ) throws(TidemarkError) {
    let query = try ObjectQuery(core, condition, order)
    // Everything that may fail comes before anything is changed.
    var news: [(id: ID, bytes: [UInt8], found: FoundObject?, box: ObjectBox<Object>?)] = []
    var unreadable = list.unreadable
    for key in keys where key.count > core.prefix.count {
      let bytes = Array(key[core.prefix.count...])
      let place = core.codec.place(bytes[...]).id
      unreadable[place] = try query.unindexed(id: bytes)
      let tell = UnreadableObjects { unreadable[place] = $0 }
      let found = try query.rows.found(id: bytes)
      guard found != nil || list.terms[bytes] != nil else { continue }
      let box =
        found == nil ? nil : try tell.box(core.fetch(query.rows.view).fetch([bytes])[0], of: core)
      guard let id = core.id(ofKey: key) else { continue }
      news.append((id, bytes, box == nil ? nil : found, box))
    }
    // With a bound, an object that was left out may take the place of one that goes.
    if limit != nil, news.contains(where: { $0.found?.terms != list.terms[$0.bytes] }) {
      return try askAnew(&list, &changes)
    }
    list.unreadable = unreadable
    for (id, bytes, found, box) in news {
      let old = list.terms[bytes]
      var former: Int?
      if let old {
        let place = Self.place(of: .init(id: bytes, terms: old), in: list)
        if let found, found.terms == old, let box {
          guard !Self.areEqual(list.objects[place].object, box.object) else { continue }
          list.objects[place] = box
          changes.updated.append(id)
          continue
        }
        former = place
        list.rows.remove(at: place)
        list.objects.remove(at: place)
        list.ids.remove(at: place)
        list.terms[bytes] = nil
      }
      guard let found, let box else {
        if old != nil { changes.removed.append(id) }
        continue
      }
      let place = Self.place(of: found, in: list)
      list.rows.insert(found, at: place)
      list.objects.insert(box, at: place)
      list.ids.insert(id, at: place)
      list.terms[bytes] = found.terms
      if former == nil {
        changes.inserted.append(id)
      } else if former == place {
        changes.updated.append(id)
      } else {
        changes.moved.append(id)
      }
    }
  }

  /// Where an object stands, or would.
  private static func place(of found: FoundObject, in list: List) -> Int {
    list.rows.partitioningIndex { !$0.precedes(found, list.isReversed) }
  }

  private func difference(_ before: List, _ now: List) -> ObjectListChanges<ID> {
    var changes = ObjectListChanges<ID>()
    var places: [[UInt8]: Int] = [:]
    for (place, row) in before.rows.enumerated() { places[row.id] = place }
    var last = -1
    for (place, row) in now.rows.enumerated() {
      let id = now.ids[place]
      guard let old = places.removeValue(forKey: row.id) else {
        changes.inserted.append(id)
        continue
      }
      if old < last {
        changes.moved.append(id)
      } else {
        last = old
        if !Self.areEqual(before.objects[old].object, now.objects[place].object) {
          changes.updated.append(id)
        }
      }
    }
    for (row, id) in zip(before.rows, before.ids) where places[row.id] != nil {
      changes.removed.append(id)
    }
    return changes
  }

  /// Whether two objects are equal, where their type can say so.
  private static func areEqual(_ a: Object, _ b: Object) -> Bool {
    func isEqual<Value: Equatable>(_ a: Value) -> Bool { (b as? Value) == a }
    return (a as? any Equatable).map { isEqual($0) } ?? false
  }
}
