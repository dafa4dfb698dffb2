El Amazonas es el mayor río del mundo por volumen de agua .
Marie Curie nació en Varsovia en 1867 y murió en Francia en 1934 .
La ciudad fue fundada por los romanos en el siglo I antes de Cristo .
El agua hierve a 100 grados Celsius al nivel del mar .
La fotosíntesis es el proceso mediante el cual las plantas convierten la luz en energía química .
Su población supera los dos millones de habitantes , lo que la convierte en la segunda ciudad más grande del país .
Cervantes escribió la primera parte del Quijote a principios del siglo XVII .
El puente , construido totalmente en piedra , tiene once arcos y mide casi 300 metros de largo .
Los murciélagos son los únicos mamíferos que realmente pueden volar .
El tratado no entró en vigor hasta tres años después .
El hierro se extrae de minerales como la hematita y la magnetita .
La Luna tarda unos 27 días en dar una vuelta alrededor de la Tierra .
La novela se ha traducido a más de cuarenta idiomas .
El pintor pasó sus últimos años en un pueblo de la costa de Bretaña .
Aunque la especie no está en peligro de extinción , su hábitat lleva décadas reduciéndose .
Los idiomas oficiales de Suiza son el alemán , el francés , el italiano y el romanche .
Durante la Segunda Guerra Mundial , la fábrica produjo motores para aviones militares .
El corazón humano late unas 100.000 veces al día .
Se le concedió el Premio Nobel de Física por su descubrimiento del neutrón .
El museo alberga una de las colecciones de escultura gótica más importantes de Europa .
La mayoría de los volcanes se encuentran en los bordes de las placas tectónicas .
La isla pertenece a Chile , pero se encuentra a más de 3.500 kilómetros de su costa .
A diferencia de las aves , los reptiles no pueden regular su propia temperatura corporal .
La muerte del rey dio lugar a una larga guerra civil .
Beethoven siguió componiendo incluso después de haber perdido el oído .
En 1969 , dos astronautas estadounidenses caminaron por primera vez sobre la superficie de la Luna .
La imprenta permitió producir libros de forma rápida y barata .
La cordillera separa los dos países y alcanza una altura de 3.404 metros .
Las abejas se comunican entre sí mediante una especie de danza .
Según el censo de 2011 , menos de la mitad de los habitantes habla el dialecto local .
El teatro fue destruido por un incendio y nunca se reconstruyó .
El sonido viaja más rápido por el agua que por el aire .
No se sabe quién diseñó las dos torres de la catedral .
