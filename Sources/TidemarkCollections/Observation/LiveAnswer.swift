public import TidemarkEngine

/// The answer of a ``LiveRequest`` at one time, with the errors of objects that could not be read.
public struct LiveAnswer<Value: Sendable>: Sendable {
  /// The answer; nil when the request is for one object and that object cannot be read.
  public let value: Value?
  /// The errors of objects that could not be read, each with the object's id. The answer may lack
  /// these objects.
  public let unreadable: [TidemarkError]
}

extension ObjectCollection {
  func answers<Value: Sendable>(
    _ begin: @escaping @Sendable () -> any Watcher<LiveAnswer<Value>>
  ) -> LiveValues<LiveAnswer<Value>> {
    LiveValues(store: store, interval: .zero, begin: begin)
  }
}

/// Makes answers of what another watcher finds.
struct AnswerWatcher<Base: Watcher, Value: Sendable>: Watcher {
  let base: Base
  let answer: @Sendable (Base.State) -> LiveAnswer<Value>

  var held: HeldWatch { base.held }

  func look() throws -> LiveAnswer<Value>? { try base.look().map(answer) }
}

/// Reads anew after each commit that writes objects of a collection.
struct RereadWatcher<Value: Sendable>: Watcher {
  /// Reads, and tells of objects that it cannot read.
  typealias Read = @Sendable (@escaping @Sendable (TidemarkError) -> Void) throws -> Value

  let held: HeldWatch
  private let read: Read
  private let hasRead = Lock(false)

  init<Object, ID>(_ core: CollectionCore<Object, ID>, _ read: @escaping Read) {
    held = core.store.hub.watch(prefix: core.prefix)
    self.read = read
  }

  func look() throws -> LiveAnswer<Value>? {
    try held.look { news in
      guard !news.isEmpty || !hasRead.withLock({ $0 }) else { return nil }
      let unreadable = Lock<[TidemarkError]>([])
      let value = try read { error in unreadable.withLock { $0.append(error) } }
      hasRead.withLock { $0 = true }
      return LiveAnswer(value: value, unreadable: unreadable.withLock { $0 })
    }
  }
}

extension ObjectList {
  /// A list without objects.
  static var empty: ObjectList {
    ObjectList(boxes: [], ids: [], changes: ObjectListChanges(), unreadable: [])
  }
}
