using System.Globalization;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>What the versions of Unity call differently, in one place.</summary>
    static class Compat
    {
        /// <summary>The id of an object in this session, as text: it has 64 bits, and readers of JSON cut those.</summary>
        public static string IdOf(Object item)
        {
#if UNITY_6000_5_OR_NEWER
            return EntityId.ToULong(item.GetEntityId()).ToString(CultureInfo.InvariantCulture);
#else
#pragma warning disable 618
            return item.GetInstanceID().ToString(CultureInfo.InvariantCulture);
#pragma warning restore 618
#endif
        }

        /// <summary>Finds an object by its id; <c>null</c> when the text is no id or the object is gone.</summary>
        public static Object Find(string id)
        {
#if UNITY_6000_5_OR_NEWER
            return ulong.TryParse(id, NumberStyles.None, CultureInfo.InvariantCulture, out var entity)
                ? EditorUtility.EntityIdToObject(EntityId.FromULong(entity)) : null;
#else
#pragma warning disable 618
            return int.TryParse(id, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out var instance)
                ? EditorUtility.InstanceIDToObject(instance) : null;
#pragma warning restore 618
#endif
        }
    }
}
