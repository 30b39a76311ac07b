/** A few numbers as bars, for the eye; the words beside it say the same. */
export function Spark({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const most = Math.max(1, ...values);
  const width = 100 / Math.max(1, values.length);
  return (
    <svg class="spark" role="img" aria-label={label} viewBox="0 0 100 24" preserveAspectRatio="none">
      {values.map((value, index) => {
        const height = value === 0 ? 1 : Math.max(3, (value / most) * 24);
        return (
          <rect
            key={index}
            class={value === 0 ? 'none' : 'some'}
            x={index * width + width * 0.1}
            y={24 - height}
            width={width * 0.8}
            height={height}
          />
        );
      })}
    </svg>
  );
}
