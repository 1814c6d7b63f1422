#if canImport(SwiftUI)
  public import SwiftUI
  public import Tidemark

  /// The objects that meet a condition, in order. `$notes` is the ``LiveState``, whose
  /// ``LiveState/rows`` have sync states, and whose `condition`, `sort` and `limit` can be set.
  ///
  /// ```swift
  /// @LiveQuery(\.isDone == false, sort: [.folded(\.text)]) var notes: ObjectList<Note, String>
  /// ```
  public typealias LiveQuery<Object: CollectionObject> = LiveProperty<ListRequest<Object>>

  /// One object by its id; nil while there is none. While it cannot be read, it is the last
  /// readable version: `@LiveObject var note: Note?` with `init(id: String) { _note =
  /// LiveObject(id) }`.
  public typealias LiveObject<Object: CollectionObject> = LiveProperty<ObjectRequest<Object>>

  /// How many objects meet a condition: `@LiveCount<Note>(\.isDone == false) var open`. Commits of
  /// the collection count anew. Unreadable objects may be missing in the count.
  public typealias LiveCount<Object: CollectionObject> = LiveProperty<CountRequest<Object>>

  /// The objects that have some words, the best first: `@LiveSearch("text") var found: [Note]`.
  /// Commits of the collection search anew. While the index is being built, `$found.error` says so.
  public typealias LiveSearch<Object: CollectionObject> = LiveProperty<SearchRequest<Object>>

  /// The property wrapper behind ``LiveQuery``, ``LiveObject``, ``LiveCount`` and ``LiveSearch``:
  /// the view is drawn anew when the answer changes. The modifier `store` gives it its store.
  @MainActor @propertyWrapper
  public struct LiveProperty<Request: LiveRequest>: DynamicProperty {
    @Environment(\.givenStore) private var given
    @State private var state: LiveState<Request>
    private let request: Request

    /// Creates a property from a request of your own; the shorter initializers make the usual
    /// requests. When a parent view passes another request, the property follows that.
    public init(_ request: Request) {
      self.request = request
      _state = State(wrappedValue: LiveState(request))
    }

    /// The newest answer of the request; empty before the first answer.
    public var wrappedValue: Request.Value { state.value }
    /// The ``LiveState`` behind the property, with its errors and the settable properties of the
    /// request.
    public var projectedValue: LiveState<Request> { state }
    /// Follows the request in the environment's store. SwiftUI calls this on the main actor.
    nonisolated public func update() {
      MainActor.assumeIsolated { state.follow(request, in: given) }
    }
    /// Creates a `@LiveQuery`: the objects that meet a condition, in order.
    /// - Parameters:
    ///   - condition: the condition that objects must meet; every object by default.
    ///   - sort: the properties by which the list is sorted; by id when empty.
    ///   - limit: the most objects in the list; nil for all.
    public init<Object>(
      _ condition: ObjectCondition<Object> = .everything, sort: [ObjectOrder<Object>] = [],
      limit: Int? = nil
    ) where Request == ListRequest<Object> {
      self.init(ListRequest(condition, sort: sort, limit: limit))
    }
    /// Creates a `@LiveObject`: the object with this id, or nil while there is none.
    public init<Object>(_ id: Object.ID) where Request == ObjectRequest<Object> {
      self.init(ObjectRequest(id))
    }
    /// Creates a `@LiveCount`: the number of objects that meet a condition; by default all objects
    /// count.
    public init<Object>(_ condition: ObjectCondition<Object> = .everything)
    where Request == CountRequest<Object> { self.init(CountRequest(condition)) }
    /// Creates a `@LiveSearch`: the objects that a full-text index finds, the best first.
    /// - Parameters:
    ///   - index: the name of the full-text index.
    ///   - query: the words to find; empty for none.
    ///   - condition: the found objects must also meet this condition.
    ///   - limit: the most objects; the default is 50.
    public init<Object>(
      _ index: String, _ query: TextQuery = "",
      where condition: ObjectCondition<Object> = .everything, limit: Int = 50
    ) where Request == SearchRequest<Object> {
      self.init(SearchRequest(index, query, where: condition, limit: limit))
    }
  }

  extension LiveState {
    /// Returns a binding to a property of the request, for a control that changes it:
    /// `.searchable(text: $found.binding(\.query.text))`.
    public func binding<Property>(_ path: WritableKeyPath<Request, Property>) -> Binding<Property> {
      Binding(get: { self.request[keyPath: path] }, set: { self.request[keyPath: path] = $0 })
    }
  }
#endif
