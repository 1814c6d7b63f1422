/// A request for objects of one type whose answer is kept up to date, such as the list that a view
/// shows.
public protocol LiveRequest: Equatable, Sendable {
  /// The type of the objects that the request is for.
  associatedtype Object: CollectionObject
  /// The type of the answer, such as a list or a count.
  associatedtype Value: Sendable
  /// The collection that answers the request.
  typealias Source = ObjectCollection<Object, Object.ID>
  /// The sequence of answers: one at once, and one after each change.
  typealias Answers = LiveValues<LiveAnswer<Value>>

  /// The value to show until the first answer has come: no objects.
  static var empty: Value { get }
  /// Returns the ids of the objects in an answer.
  static func ids(of value: Value) -> [Object.ID]
  /// Starts to answer the request from a collection: the first answer comes at once, then each that
  /// differs.
  func answers(in collection: Source) -> Answers
}

/// A request for the objects that meet a condition, as a sorted list.
public struct ListRequest<Object: CollectionObject>: LiveRequest {
  /// The condition that objects must meet; an index of the collection has to cover it.
  public var condition: ObjectCondition<Object>
  /// The properties that the list is sorted by; by id when empty.
  public var sort: [ObjectOrder<Object>]
  /// The most objects in the list; nil for all.
  public var limit: Int?

  /// Creates a request for a list of objects.
  /// - Parameters:
  ///   - condition: the condition that objects must meet; every object by default.
  ///   - sort: the properties that the list is sorted by; by id when empty.
  ///   - limit: the most objects in the list; nil for all.
  public init(
    _ condition: ObjectCondition<Object> = .everything, sort: [ObjectOrder<Object>] = [],
    limit: Int? = nil
  ) {
    (self.condition, self.sort, self.limit) = (condition, sort, limit)
  }

  /// The value to show until the first answer has come: no objects.
  public static var empty: ObjectList<Object, Object.ID> { .empty }
  /// Returns the ids of the objects in an answer.
  public static func ids(of list: ObjectList<Object, Object.ID>) -> [Object.ID] { list.ids }
  /// Starts to answer the request from a collection: the first answer comes at once, then each that
  /// differs.
  public func answers(in collection: Source) -> Answers {
    collection.answers {
      AnswerWatcher(base: ListWatcher(collection.core, condition, sort, limit)) {
        LiveAnswer(value: $0, unreadable: $0.unreadable)
      }
    }
  }
}

/// A request for one object by its id. The answer is nil while there is no such object, and has no
/// value while the object cannot be read.
public struct ObjectRequest<Object: CollectionObject>: LiveRequest {
  /// The id of the requested object.
  public var id: Object.ID

  /// Creates a request for the object with an id.
  public init(_ id: Object.ID) { self.id = id }

  /// The value to show until the first answer has come: no objects.
  public static var empty: Object? { nil }
  /// Returns the ids of the objects in an answer.
  public static func ids(of object: Object?) -> [Object.ID] { object.map { [$0.id] } ?? [] }
  /// Starts to answer the request from a collection: the first answer comes at once, then each that
  /// differs.
  public func answers(in collection: Source) -> Answers {
    collection.answers {
      AnswerWatcher(base: ObjectWatcher(collection.core, id)) { result in
        switch result {
        case .success(let object): LiveAnswer(value: .some(object), unreadable: [])
        case .failure(let error): LiveAnswer(value: nil, unreadable: [error])
        }
      }
    }
  }
}

/// A request for the number of objects that meet a condition.
public struct CountRequest<Object: CollectionObject>: LiveRequest {
  /// The condition that the counted objects meet; an index of the collection has to cover it.
  public var condition: ObjectCondition<Object>

  /// Creates a request for a count; by default of all objects.
  public init(_ condition: ObjectCondition<Object> = .everything) { self.condition = condition }

  /// The count to show until the first answer has come: 0.
  public static var empty: Int { 0 }
  /// Returns no ids, since a count names no objects.
  public static func ids(of count: Int) -> [Object.ID] { [] }
  /// Starts to answer the request from a collection: the first answer comes at once, then each that
  /// differs.
  public func answers(in collection: Source) -> Answers {
    collection.answers {
      RereadWatcher(collection.core) { try collection.count(where: condition, unreadable: $0) }
    }
  }
}

/// A request for the objects that contain some words, the best matches first.
public struct SearchRequest<Object: CollectionObject>: LiveRequest {
  /// The name of the full-text index to search.
  public var index: String
  /// The words to search for; an empty query finds nothing.
  public var query: TextQuery
  /// A condition that the found objects must also meet; every object by default.
  public var condition: ObjectCondition<Object>
  /// The most objects in the answer; 50 by default.
  public var limit: Int

  /// Creates a request for a full-text search.
  /// - Parameters:
  ///   - index: the name of the full-text index to search.
  ///   - query: the words to search for; an empty query finds nothing.
  ///   - condition: a condition that the found objects must also meet.
  ///   - limit: the most objects in the answer.
  public init(
    _ index: String, _ query: TextQuery = "",
    where condition: ObjectCondition<Object> = .everything, limit: Int = 50
  ) {
    (self.index, self.query, self.condition, self.limit) = (index, query, condition, limit)
  }

  /// The value to show until the first answer has come: no objects.
  public static var empty: [Object] { [] }
  /// Returns the ids of the objects in an answer.
  public static func ids(of found: [Object]) -> [Object.ID] { found.map(\.id) }
  /// Starts to answer the request from a collection: the first answer comes at once, then each that
  /// differs.
  public func answers(in collection: Source) -> Answers {
    collection.answers {
      RereadWatcher(collection.core) {
        try collection.search(index, query, where: condition, limit: limit, unreadable: $0)
          .map(\.object)
      }
    }
  }
}
