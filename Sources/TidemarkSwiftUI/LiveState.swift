public import Observation
public import Tidemark
public import TidemarkSync

/// The answer of a request as it changes: `$notes` of `@LiveQuery var notes`.
///
/// The first answer is read at once, on the main actor, so that the first frame of a view has it.
/// Commits bring later answers. The request's properties are properties of the state, and setting
/// one reads the new answer at once: `$notes.condition = .everything`. Without SwiftUI, create a
/// state with ``init(_:in:replicator:)`` and observe it.
@MainActor @Observable @dynamicMemberLookup
public final class LiveState<Request: LiveRequest> {
  /// The newest answer; empty before the first one, and after a request that has an error.
  public private(set) var value = Request.empty
  /// Why objects cannot be read, such as those of a newer version of the app. They may be missing
  /// in the answer, which has the other objects.
  public private(set) var unreadable: [TidemarkError] = []
  /// Why no newer answer comes; nil while the request is followed. Another request tries again, and
  /// so does the end of building an index.
  public private(set) var error: (any Error)?
  /// Whether ``value`` is an answer; false while the store was suspended before the first one.
  public private(set) var isLoaded = false
  /// The request that the state follows. Setting another one reads the new answer at once.
  public var request: Request { didSet { if request != oldValue { begin() } } }
  /// The states of the answer's objects towards the replicator's peer, by id. The first use begins
  /// to look them up, off the main actor, which costs time for each object: give long lists a
  /// limit.
  public var syncStates: [Request.Object.ID: KeyState] {
    if marked == nil {
      marked = []
      followStates()
    }
    return states
  }

  private var states: [Request.Object.ID: KeyState] = [:]
  /// The objects whose states are followed; nil while nobody asks for states.
  @ObservationIgnored private var marked: [Request.Object.ID]?
  @ObservationIgnored private var given: GivenStore = (nil, nil)
  @ObservationIgnored private var opened: Request.Source?
  /// The request of the last call of `follow`.
  @ObservationIgnored private var declared: Request
  @ObservationIgnored private var answers: Task<Void, Never>?
  @ObservationIgnored private var marks: Task<Void, Never>?

  init(_ request: Request) { (self.request, declared) = (request, request) }

  /// Creates a state that follows a request in a store, for programs without SwiftUI.
  /// - Parameters:
  ///   - request: the question.
  ///   - store: the store that answers it.
  ///   - replicator: gives the sync states of the answer's objects; nil for none.
  public convenience init(_ request: Request, in store: Store, replicator: Replicator? = nil) {
    self.init(request)
    follow(request, in: (store, replicator))
  }

  deinit {
    answers?.cancel()
    marks?.cancel()
  }

  /// Follows a request. A call with the arguments of the last one does nothing.
  func follow(_ request: Request, in given: GivenStore) {
    let isOther = request != declared && request != self.request
    let isElsewhere =
      given.store !== self.given.store || given.replicator !== self.given.replicator
    declared = request
    if isElsewhere {
      marks?.cancel()
      (self.given, opened, states, marked) = (given, nil, [:], marked.map { _ in [] })
    }
    if isOther {
      self.request = request
    } else if isElsewhere || answers == nil && error == nil {
      begin()
    }
  }

  /// The collection, for writes: `try await $notes.collection.put(note)`.
  /// - Throws: `invalidArgument` without a store, and the errors of asking for the collection.
  public var collection: Request.Source {
    get throws {
      if opened == nil { opened = try given.store.map(Request.Object.collection) }
      if let opened { return opened }
      throw TidemarkError(.invalidArgument, "the view has no store: add .store(…) above it")
    }
  }

  /// Reads or sets a property of the request, such as `$notes.condition`.
  public subscript<Property>(dynamicMember path: WritableKeyPath<Request, Property>) -> Property {
    get { request[keyPath: path] }
    set { request[keyPath: path] = newValue }
  }

  private func begin(isRetry: Bool = false) {
    answers?.cancel()
    (answers, error, isLoaded) = (nil, nil, false)
    var first: LiveAnswer<Request.Value>?
    do {
      let (now, rest) = try request.answers(in: collection).started()
      first = now
      answers = Task { [weak self] in
        do {
          for try await answer in rest { self?.take(answer) }
        } catch { if !Task.isCancelled { self?.fail(error, isRetry) } }
      }
    } catch { fail(error, isRetry) }
    (value, unreadable) = (first?.value ?? Request.empty, [])
    if let first { take(first) }
  }

  private func take(_ answer: LiveAnswer<Request.Value>) {
    // While an object cannot be read, its last version stays.
    if let value = answer.value { self.value = value }
    (unreadable, isLoaded) = (answer.unreadable, true)
    followStates()
  }

  /// Tries again after the end of what a request waits for: a suspension, or building an index.
  private func fail(_ error: any Error, _ isRetry: Bool) {
    let code = (error as? TidemarkError)?.code
    if code != .suspended { self.error = error }
    guard code == .suspended || code == .indexMissing && !isRetry else { return }
    answers = Task { [weak self, opened, store = given.store] in
      if code == .indexMissing { try? await opened?.indexesBuilt() }
      // A suspended store has values after `resume()`.
      var values = store?.values(forKey: "resumed").makeAsyncIterator()
      _ = try? await values?.next()
      if !Task.isCancelled { self?.begin(isRetry: code == .indexMissing) }
    }
  }

  private func followStates() {
    let ids = Request.ids(of: value)
    guard let marked, marked != ids, let opened, let replicator = given.replicator else { return }
    self.marked = ids
    marks?.cancel()
    marks = Task { [weak self] in
      while !Task.isCancelled {
        do {
          let changes = try opened.syncStates(of: ids, by: replicator)
          for try await states in changes { self?.states = states }
          return
        } catch {
          guard (error as? TidemarkError)?.code == .suspended else { return }
          try? await Task.sleep(for: .seconds(1))
        }
      }
    }
  }
}

/// The arguments of the modifier `store`.
typealias GivenStore = (store: Store?, replicator: Replicator?)

/// An object of a list with its sync state. The object's properties are properties of the row.
@dynamicMemberLookup
public struct LiveRow<Object: CollectionObject>: Identifiable, Sendable {
  /// The object of the row.
  public let object: Object
  /// The object's sync state at the replicator's peer. Nil without a replicator, and until the
  /// state is looked up.
  public let syncState: KeyState?
  /// The id of the row's object, by which a SwiftUI list tells its rows apart.
  public var id: Object.ID { object.id }
  /// Reads a property of the row's object, so that `row.text` works.
  public subscript<Property>(dynamicMember path: KeyPath<Object, Property>) -> Property {
    object[keyPath: path]
  }
}

extension LiveState
where Request.Value: RandomAccessCollection, Request.Value.Element == Request.Object {
  /// The objects with their ``syncStates``, for a list: `List($notes.rows) { note in … }`.
  public var rows: some RandomAccessCollection<LiveRow<Request.Object>> {
    let states = syncStates
    return value.lazy.map { LiveRow(object: $0, syncState: states[$0.id]) }
  }
}
