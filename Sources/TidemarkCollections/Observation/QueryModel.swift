public import TidemarkEngine
public import Observation

/// The objects of a query, for a view: it follows the store as long as it lives.
///
/// ```swift
/// let model = QueryModel(notes, \.isDone == false, sort: [.descending(\.time)])
/// List(model.objects) { note in Text(note.title) }
/// ```
@MainActor @Observable
public final class QueryModel<Object: Sendable, ID: CollectionID> {
  /// The objects, in order, with the last difference and with what cannot be read; empty until the
  /// first answer is there.
  public private(set) var objects = ObjectList<Object, ID>(
    boxes: [], ids: [], changes: ObjectListChanges(), unreadable: [])
  /// Whether the first answer is there.
  public private(set) var isLoaded = false
  /// Why nothing more comes.
  public private(set) var error: (any Error)?

  @ObservationIgnored private var task: Task<Void, Never>?

  /// Follows a query.
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

  isolated deinit { task?.cancel() }
}

/// One object, for a view: it follows the store as long as it lives.
@MainActor @Observable
public final class ObjectModel<Object: Sendable, ID: CollectionID> {
  /// The object; nil while there is none. Where it cannot be read, it is the last that could.
  public private(set) var object: Object?
  /// Why the object cannot be read as it is now; nil when it can.
  public private(set) var unreadable: TidemarkError?
  /// Whether it was looked for.
  public private(set) var isLoaded = false
  /// Why nothing more comes.
  public private(set) var error: (any Error)?

  @ObservationIgnored private var task: Task<Void, Never>?

  /// Follows an object.
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

  isolated deinit { task?.cancel() }
}
