public import TidemarkEngine
public import Observation

/// An observable list of the objects of a query, for a view. It follows the store as long as the
/// model lives.
///
/// ```swift
/// let model = QueryModel(notes, \.isDone == false, sort: [.descending(\.time)])
/// List(model.objects) { note in Text(note.title) }
/// ```
@MainActor @Observable
public final class QueryModel<Object: Sendable, ID: CollectionID> {
  /// The objects of the query, in order, with the changes since the last list and the objects that
  /// cannot be read. Empty until ``isLoaded`` is true.
  public private(set) var objects = ObjectList<Object, ID>(
    boxes: [], ids: [], changes: ObjectListChanges(), unreadable: [])
  /// Whether the first list has come. Until then an empty list does not mean that there are no
  /// objects.
  public private(set) var isLoaded = false
  /// The error that has ended the model, so that no more changes come; nil while it follows the
  /// store.
  public private(set) var error: (any Error)?

  @ObservationIgnored private var task: Task<Void, Never>?

  /// Creates a model that follows a query.
  /// - Parameters:
  ///   - collection: the collection.
  ///   - condition: the condition.
  ///   - order: what the objects are sorted by.
  ///   - limit: most objects.
  ///   - interval: the least time between two changes.
  public init(
    _ collection: ObjectCollection<Object, ID>,
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = [],
    limit: Int? = nil, minimumInterval interval: Duration = .zero
  ) {
    let lists = collection.observe(
      condition, sort: order, limit: limit, minimumInterval: interval)
    task = Task { [weak self] in
      do {
        for try await list in lists {
          guard let self else { return }
          objects = list
          isLoaded = true
        }
      } catch { self?.error = error }
    }
  }

  deinit { task?.cancel() }
}

/// An observable object of a collection, for a view. It follows the store as long as the model
/// lives.
@MainActor @Observable
public final class ObjectModel<Object: Sendable, ID: CollectionID> {
  /// The object; nil while there is none with the id. While the object cannot be read, the last
  /// state that could be.
  public private(set) var object: Object?
  /// The error with which reading the object's present state fails; nil when it succeeds.
  public private(set) var unreadable: TidemarkError?
  /// Whether the model has read the object once. Before, a nil ``object`` means not read yet;
  /// afterwards it means that there is no such object.
  public private(set) var isLoaded = false
  /// The error that has ended the model, so that no more changes come; nil while it follows the
  /// store.
  public private(set) var error: (any Error)?

  @ObservationIgnored private var task: Task<Void, Never>?

  /// Creates a model that follows the object with an id.
  /// - Parameters:
  ///   - collection: its collection.
  ///   - id: its id.
  public init(_ collection: ObjectCollection<Object, ID>, id: ID) {
    let results = collection.results(for: id)
    task = Task { [weak self] in
      do {
        for try await result in results {
          guard let self else { return }
          switch result {
          case .success(let value): (object, unreadable) = (value, nil)
          case .failure(let error): unreadable = error
          }
          isLoaded = true
        }
      } catch { self?.error = error }
    }
  }

  deinit { task?.cancel() }
}
