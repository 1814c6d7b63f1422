#if canImport(SwiftUI)
  public import SwiftUI
  public import Tidemark
  public import TidemarkSync

  extension View {
    /// Gives a store to the live properties of the views within, and a replicator for the sync
    /// states of their rows.
    /// - Parameters:
    ///   - store: the store; nil while it is not open yet.
    ///   - replicator: gives the sync states; nil for none.
    nonisolated public func store(_ store: Store?, replicator: Replicator? = nil) -> some View {
      environment(\.givenStore, (store, replicator))
    }
  }

  private struct GivenStoreKey: EnvironmentKey {
    static var defaultValue: GivenStore { (nil, nil) }
  }

  extension EnvironmentValues {
    /// The store of the modifier `store`, for a view that writes or reads without a property
    /// wrapper.
    public var tidemarkStore: Store? { givenStore.store }
    var givenStore: GivenStore {
      get { self[GivenStoreKey.self] }
      set { self[GivenStoreKey.self] = newValue }
    }
  }

  extension Scene {
    /// Suspends a store when the scene goes to the background, and resumes it when the scene is
    /// active again: see ``StoreSuspension``. Views keep their objects meanwhile. On macOS, which
    /// does not put apps to sleep, the store stays open.
    /// - Parameters:
    ///   - store: the store; nil while it is not open yet. The first store given is the one that is
    ///     suspended from then on.
    ///   - onError: called with the errors of suspending and resuming.
    public func suspendsStore(
      _ store: Store?, onError: @escaping @MainActor (any Error) -> Void = { _ in }
    ) -> some Scene {
      SuspendingScene(content: self, state: store.map { StoreSuspension($0, onError: onError) })
    }
  }

  private struct SuspendingScene<Content: Scene>: Scene {
    @Environment(\.scenePhase) private var phase
    let content: Content
    @State var state: StoreSuspension?

    var body: some Scene {
      content.onChange(of: phase) { _, phase in
        #if canImport(UIKit)
          if phase == .background { state?.leave() }
          if phase == .active { state?.enter() }
        #endif
      }
    }
  }

  /// Content for previews, in a store in memory: `#Preview(traits: .modifier(Samples())) { … }`.
  /// The previews that name the same type share one store.
  public protocol StorePreview: PreviewModifier where Context == Store {
    /// Writes the content of the previews. Previews show the error that this throws.
    /// - Parameter store: the new, empty store in memory.
    static func fill(_ store: Store) async throws
  }

  extension StorePreview {
    /// Opens the store and fills it. Xcode calls this.
    public static func makeSharedContext() async throws -> Store {
      let store = try await Store.open(at: .inMemory)
      try await fill(store)
      return store
    }
    /// The preview with its store. Xcode calls this.
    public func body(content: Content, context: Store) -> some View { content.store(context) }
  }
#endif
