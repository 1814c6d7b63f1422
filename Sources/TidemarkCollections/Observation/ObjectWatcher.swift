internal import TidemarkEngine

final class ObjectWatcher<Object: Sendable, ID: CollectionID>: Watcher {
  let held: HeldWatch
  private let core: CollectionCore<Object, ID>
  private let id: ID
  private let key: [UInt8]
  /// The entry that was delivered last; 0 for none at all.
  private let last = Lock<UInt64?>(nil)

  init(_ core: CollectionCore<Object, ID>, _ id: ID) {
    key = core.prefix + id.keyBytes
    held = core.store.hub.watch(key: key)
    self.core = core
    self.id = id
  }

  func look() throws -> Result<Object?, TidemarkError>? {
    let key = key
    return try held.look { (news) throws(TidemarkError) in
      let isFirst = last.withLock { $0 == nil }
      guard isFirst || !news.isEmpty else { return nil }
      let sequence = try core.store.engine.reader.newestEntry(ofKey: key.rawSpan)
      if last.withLock({ $0 == sequence }), !news.isAll { return nil }
      let result = Result { () throws(TidemarkError) in try core.object(id) }
      if case .failure(let error) = result, error.code != .coding { throw error }
      last.withLock { $0 = sequence }
      return result
    }
  }
}

/// Watches one object, and passes over states that cannot be read.
struct ReadableWatcher<Object: Sendable, ID: CollectionID>: Watcher {
  let watcher: ObjectWatcher<Object, ID>
  /// Is told of such states; nil where the first is an error.
  let unreadable: (@Sendable (TidemarkError) -> Void)?

  var held: HeldWatch { watcher.held }

  func look() throws -> Object?? {
    switch try watcher.look() {
    case .success(let object): return .some(object)
    case .failure(let error):
      try UnreadableObjects(told: unreadable).tell(error)
      return nil
    case nil: return nil
    }
  }
}
